printf '[%.0s' $(seq 129) > too-deep.json
