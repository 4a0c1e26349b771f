mkdir unreadable-file.yaml
