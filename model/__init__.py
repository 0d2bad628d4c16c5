"""The model check: the product's own code and SQL over a modelled machine and object store. See docs/model.md."""
