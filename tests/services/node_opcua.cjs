// A server of node-opcua as a program: node node_opcua.cjs '{"port": 4840, "modules": ..., "pki": ...}'
const { createRequire } = require("module");
const options = JSON.parse(process.argv[2]);
const {
  OPCUAServer, Variant, DataType, StatusCodes, MessageSecurityMode, SecurityPolicy, OPCUACertificateManager,
} = createRequire(options.modules + "/")("node-opcua");

const isOpen = options.policies.length === 1 && options.policies[0] === "NoSecurity";
const users = options.users;

async function main() {
  const certificates = new OPCUACertificateManager({
    rootFolder: options.pki, automaticallyAcceptUnknownCertificate: false,
  });
  await certificates.initialize();
  const isNamed = Object.keys(users).length > 0;
  const server = new OPCUAServer({
    port: options.port, hostname: "127.0.0.1", alternateHostname: "127.0.0.1", allowAnonymous: !isNamed,
    // It offers user names only where the modes are left to it.
    securityModes: isOpen && !isNamed ? [MessageSecurityMode.None] : undefined,
    securityPolicies: isOpen && !isNamed ? [SecurityPolicy.None] : undefined,
    serverCertificateManager: certificates,
    userManager: { isValidUser: (user, password) => users[user] === password },
    transportSettings: {
      adjustTransportLimits: () => ({
        maxChunkCount: 1000, maxMessageSize: 16 * 1024 * 1024, receiveBufferSize: 8192, sendBufferSize: 65536,
      }),
    },
    serverCapabilities: {
      operationLimits: { maxMonitoredItemsPerCall: 10, maxNodesPerBrowse: 10, maxNodesPerRead: 10 },
    },
  });
  await server.initialize();
  const space = server.engine.addressSpace, own = space.getOwnNamespace();
  const device = own.addObject({ organizedBy: space.rootFolder.objects, browseName: "Device", nodeId: "s=Device" });
  const add = (name, dataType, value) => {
    const it = own.addVariable({
      componentOf: device, browseName: name, nodeId: `s=${name}`, dataType, minimumSamplingInterval: 50,
    });
    const set = (what, status) => it.setValueFromSource(new Variant({ dataType: DataType[dataType], value: what }), status);
    set(value);
    return set;
  };
  const ramp = add("Ramp", "Double", 20), flag = add("Flag", "Boolean", false), failing = add("Failing", "Double", 7);
  const text = add("Text", "String", "a"), small = add("Small", "Float", 0.1);
  failing(7, StatusCodes.BadSensorFailure);
  for (let n = 0; n < 25; n++) add(`N${n}`, "Double", n);
  const other = own.addObject({ organizedBy: space.rootFolder.objects, browseName: "Other", nodeId: "s=Other" });
  own.addVariable({ componentOf: other, browseName: "Late", nodeId: "s=Late", dataType: "String" });
  own.addVariable({ componentOf: other, browseName: "Long", nodeId: "s=Long", dataType: "String" })
    .setValueFromSource(new Variant({ dataType: DataType.String, value: "x".repeat(200000) }));
  let count = 0;
  setInterval(() => {
    count += 1;
    ramp(20 + count / 4);
    flag(count % 2 === 1);
    text(`t${count}`);
  }, 100);
  await server.start();
  console.log("ready");
}

main().catch((cause) => { console.error(cause); process.exit(1); });
