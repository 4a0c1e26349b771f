ln -s unreadable-file.yaml unreadable-file.yaml
