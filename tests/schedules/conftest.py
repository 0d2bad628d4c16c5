"""A school's people, as the tests of classes have them."""

from tests.classes.conftest import admin, kim, lee, mina, person, site

__all__ = ["admin", "kim", "lee", "mina", "person", "site"]
