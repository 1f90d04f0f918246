"""When it is done: a few lines for each Celery task. Arguments and results are plain JSON; every task may run twice."""
