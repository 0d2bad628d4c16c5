"""Logins of a school or a company by OpenID Connect: providers, what they say of a person, whose account it is."""
