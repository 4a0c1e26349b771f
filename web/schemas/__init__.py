"""The schemas of bodies that are no components and no records, for the OpenAPI document."""
