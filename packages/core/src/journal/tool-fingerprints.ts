import { isObjectOrList } from '../values/json.js';
import { isToolGroup, type Toolkit } from '../tools/toolkit.js';
import type { Tool } from '../tools/types.js';

/** By the name of a tool: the hash of its input schema, and `!` if it is idempotent. Letters only: redaction must not change it. */
export type ToolFingerprints = Readonly<Record<string, string>>;

export const fingerprintsOf = ({ entries }: Toolkit): ToolFingerprints =>
  Object.fromEntries(
    entries
      .flatMap((entry) => (isToolGroup(entry) ? entry.tools : [entry]))
      .map((tool) => [tool.name, fingerprintOf(tool)]),
  );

/** Hashing a schema takes longer than the step that records it. */
const known = new WeakMap<Tool, string>();

const fingerprintOf = (tool: Tool): string => {
  const found = known.get(tool);
  if (found !== undefined) return found;
  const made = `${lettersOf(hashOf(canonical(tool.inputSchema)))}${tool.idempotent === true ? '!' : ''}`;
  known.set(tool, made);
  return made;
};

/** JSON whose keys are sorted: their order has no meaning in a schema. */
const canonical = (schema: object): string =>
  JSON.stringify(schema, (_, value: unknown) =>
    isObjectOrList(value) && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
      : value,
  );

/** FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv, with 32 bits. */
const hashOf = (text: string): number =>
  new TextEncoder()
    .encode(text)
    .reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5) >>> 0;

const lettersOf = (hash: number): string => {
  let rest = hash;
  let letters = '';
  for (let count = 0; count < 7; count += 1) {
    letters += String.fromCharCode(97 + (rest % 26));
    rest = Math.floor(rest / 26);
  }
  return letters;
};

/** A sentence on the tools that have changed; `undefined` if none has. */
export const toolChanges = (
  before: ToolFingerprints,
  now: ToolFingerprints,
): string | undefined => {
  const changes = [
    ...Object.entries(before).flatMap(([name, then]) => {
      const own = Object.hasOwn(now, name) ? now[name] : undefined;
      return changesOf(then, own).map((change) => `'${name}' ${change}`);
    }),
    ...Object.keys(now)
      .filter((name) => !Object.hasOwn(before, name))
      .map((name) => `'${name}' is new`),
  ];
  if (changes.length === 0) return undefined;
  const more = changes.length - mostNamed;
  const named = [...changes.slice(0, mostNamed), ...(more > 0 ? [`and ${more} more changes`] : [])];
  return `The tools have changed since the call started: ${named.join(', ')}.`;
};

const mostNamed = 10;

const changesOf = (then: string, now: string | undefined): readonly string[] => {
  if (now === undefined) return ['is missing'];
  const [before, after] = [then, now].map((it) => it.endsWith('!'));
  return [
    ...(then.replace('!', '') === now.replace('!', '') ? [] : ['has another input schema']),
    ...(before === after ? [] : [after === true ? 'is idempotent now' : 'is no longer idempotent']),
  ];
};
