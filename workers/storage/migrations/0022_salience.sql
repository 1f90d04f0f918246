-- The salience of content is estimated by other weights; each namespace is estimated again.
update namespaces set estimated_facts = 0 where estimated_facts > 0;
