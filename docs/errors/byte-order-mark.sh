printf '\357\273\277- inputs: [{ type: dummy, duration: 1 }]\n' > byte-order-mark.yaml
