/** Where a new pipeline can begin. */
export interface Example {
  name: string;
  description: string;
  text: string;
}

export const EXAMPLES: readonly Example[] = [
  {
    name: "HTTP to the terminal",
    description: "Takes messages that are posted, keeps the hot ones, prints them.",
    text: `id: hot-readings
inputs:
  - type: http
transforms:
  - type: filter
    Numeric: { field: temp, operator: greater_than, value: 80 }
outputs:
  - type: stdout
`,
  },
  {
    name: "A generated signal",
    description: "Needs nothing around it: a sine, and its mean every ten seconds.",
    text: `id: signal-means
inputs:
  - type: dummy
    duration: 1
    amplitude: 10
    period: 30
transforms:
  - type: buffer
    seconds: 10
    max_messages: 1000
  - type: reducer
    aggregations:
      - { function: avg, field: value, as: mean }
outputs:
  - type: stdout
`,
  },
  {
    name: "What another pipeline hands on",
    description: "Reads a running pipeline, and counts by a field.",
    text: `id: counts
inputs:
  - type: pipeline
    upstream: ""
transforms:
  - type: buffer
    seconds: 60
    max_messages: 10000
  - type: reducer
    group_by: []
    aggregations:
      - { function: count, as: count }
outputs: []
`,
  },
  {
    name: "Kafka to PostgreSQL",
    description: "Reads a topic, renames a field, writes rows. Needs a connection to each.",
    text: `id: orders-to-table
inputs:
  - type: kafka
    connection: ""
    topic: orders
    group: headrace
    ack: on_delivery
transforms:
  - type: map
    mappings:
      - { type: copy, from: order.id, as: order }
outputs:
  - type: postgres
    connection: ""
    table: orders
`,
  },
  {
    name: "MQTT to files",
    description: "Subscribes to a topic, writes lines to files. Needs a connection to each.",
    text: `id: plant-archive
inputs:
  - type: mqtt
    connection: ""
    topic: plant/#
outputs:
  - type: file
    connection: ""
    path: plant
`,
  },
  {
    name: "Empty",
    description: "An id and nothing else.",
    text: `id: new-pipeline
inputs: []
transforms: []
outputs: []
`,
  },
];
