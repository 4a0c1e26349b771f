printf -- '- id: caf\351\n' > not-text.yaml # Latin-1
