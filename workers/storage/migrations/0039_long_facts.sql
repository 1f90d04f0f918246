-- The salience of content has weights of its own where facts are long: there it is estimated again by a daily task.
update namespaces set estimated_facts = 0 where counted_words > 40 * counted_facts;
