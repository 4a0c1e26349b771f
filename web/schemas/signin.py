"""What signing in answers."""

from __future__ import annotations

from headrace.web.schemas.shapes import TEXT_OR_NULL, Schema, object_of

BODIES: dict[str, Schema] = {
    "AuthDto": object_of(
        authentication_required={
            "type": "boolean",
            "description": "Whether the server asks who somebody is: if not, everybody may do everything.",
        },
        username={**TEXT_OR_NULL, "description": "Who is signed in; null: nobody."},
        role={"enum": ["admin", "read", None], "description": "What they may do; null: nobody is."},
    ),
}
