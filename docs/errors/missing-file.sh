rm -f missing-file.yaml
