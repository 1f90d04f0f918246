"""Celery tasks. Arguments and results are plain JSON; every task may run twice."""
