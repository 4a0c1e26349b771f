head -c 17000000 /dev/zero | tr '\0' ' ' > too-large.yaml
