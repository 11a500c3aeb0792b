import { isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';

// Asked with the names of packages, or with files, one after the other.
const names = process.argv.slice(2);

const startedAt = performance.now();
const before = process.cpuUsage();
for (const name of names) await import(isAbsolute(name) ? pathToFileURL(name).href : name);
const { user, system } = process.cpuUsage(before);
const ms = performance.now() - startedAt;
process.send?.({ ms, cpuMs: (user + system) / 1_000 }, undefined, undefined, () => process.exit(0));
