printf -- '- id: "line \033 1"\n  inputs: [{ type: dummy, duration: 1 }]\n' > control-character.yaml
