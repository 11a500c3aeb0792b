import type { Ajv } from 'ajv';
import { isRecord } from '../json.js';
import type { JsonSchema } from './json-schema.js';

/** Branches that are looked at for one input: a hundred thousand take some tens of milliseconds. */
const mostBranches = 200_000;

/** A schema whose branches are counted, and what runs a check of an input within the count. */
export interface Effort {
  readonly schema: JsonSchema;
  /** Gives what the check gives; `undefined` where it was given up. */
  within<T>(check: () => T): T | undefined;
}

/**
 * Bounds what it costs to check an input. Where branches (`anyOf`, `oneOf`) refer to the whole, each level of an input may double the
 * work, and twenty levels would stop the process. Other schemas are left as they are.
 */
export const bounded = (schema: JsonSchema, ajv: Ajv): Effort => {
  const text = JSON.stringify(schema);
  const mayExplode = /"\$(?:recursive|dynamic)?[Rr]ef"/.test(text) && /"(?:any|one)Of"/.test(text);
  if (!mayExplode) return { schema, within: (check) => check() };
  let left = 0;
  ajv.addKeyword({
    keyword,
    errors: false,
    validate: () => {
      left -= 1;
      if (left < 0) throw exhausted;
      return true;
    },
  });
  return {
    schema: withKeyword(schema),
    within: (check) => {
      left = mostBranches;
      try {
        return check();
      } catch (cause) {
        if (cause === exhausted) return undefined;
        throw cause;
      }
    },
  };
};

const keyword = 'millraceBranch';

const exhausted = new Error('The schema takes too long to check.');

/** The schema with a mark in each branch. Data that looks like branches, as in an `enum`, stays what it is. */
const withKeyword = (schema: JsonSchema): JsonSchema =>
  Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      dataKeywords.has(key) ? value : marked(key, value),
    ]),
  );

const marked = (key: string, value: unknown): unknown => {
  if (Array.isArray(value)) {
    const isBranch = key === 'anyOf' || key === 'oneOf';
    return value.map((item: unknown) => {
      if (!isRecord(item)) return item;
      return isBranch ? { ...withKeyword(item), [keyword]: true } : withKeyword(item);
    });
  }
  return isRecord(value) ? withKeyword(value) : value;
};

const dataKeywords: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples']);
