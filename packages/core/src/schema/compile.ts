import { Ajv, type Options } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { messageOf, misuse } from '../errors.js';
import type { JsonSchema } from './json-schema.js';
import { ofError, type Problem } from './problems.js';
import { uniqueItems } from './unique-items.js';
import { isRecord } from '../json.js';

/** Makes what tells whether a text matches a pattern, or throws where it cannot read the pattern. */
export type PatternEngine = (pattern: string) => { test(text: string): boolean };

export interface CompileOptions {
  /** What runs the patterns of a schema. */
  readonly patterns?: PatternEngine;
}

export interface Compiled {
  /** What is wrong with an input: an empty list where it is valid. */
  readonly problemsOf: (input: unknown) => readonly Problem[];
  /** Patterns that the engine cannot read: they are passed over. */
  readonly ignored: readonly string[];
}

const ajvOptions: Options = {
  strict: false,
  strictNumbers: true,
  ownProperties: true,
  allErrors: true,
  verbose: true,
  validateFormats: false,
  logger: false,
};

/** One instance a draft checks schemas against their meta-schema: it keeps none of them. */
const metaValidators = new Map<typeof Ajv, Ajv>();

/** A fresh instance a schema: a shared one refuses a repeated `$id`, and keeps all it has seen. */
export const compile = (
  schema: JsonSchema,
  owner: string,
  { patterns }: CompileOptions,
): Compiled => {
  const Draft = draftOf(schema, owner);
  const meta = metaValidators.get(Draft) ?? instanceOf(Draft, ajvOptions);
  metaValidators.set(Draft, meta);
  const ignored = new Set<string>();
  const engine = named(patterns === undefined ? native : tolerant(patterns, ignored));
  const options: Options = {
    ...ajvOptions,
    meta: JSON.stringify(schema).includes('"$ref":"http'),
    validateSchema: false,
    // The code is for validators that are written to a file, which these are not.
    code: { regExp: Object.assign(engine, { code: 'undefined' }) },
  };
  if ('$async' in schema) {
    throw misuse(`${owner} must not say '$async'.`);
  }
  // What is said of the draft is understood above: ajv knows each by one spelling alone.
  const { $schema: _draft, ...rules } = schema;
  try {
    if (meta.validateSchema(rules) !== true) throw new Error(meta.errorsText());
    const ajv = instanceOf(Draft, options);
    const effort = bounded(rules, ajv);
    const validate = ajv.compile(effort.schema);
    return {
      problemsOf: (input) => {
        const isValid = effort.within(() => validate(input));
        if (isValid === undefined) return [{ path: [], message: 'is too intricate to be checked' }];
        return isValid ? [] : (validate.errors ?? []).map(ofError);
      },
      ignored: [...ignored],
    };
  } catch (cause) {
    throw misuse(`${owner} is not a usable JSON Schema: ${messageOf(cause)}.`);
  }
};

const instanceOf = (Draft: typeof Ajv, options: Options): Ajv => {
  const ajv = new Draft(options);
  ajv.removeKeyword('uniqueItems').addKeyword(uniqueItems());
  return ajv;
};

/** JSON Schema means patterns with the flag `u`; many are written for an engine without it. */
const native: PatternEngine = (pattern) => {
  try {
    return new RegExp(pattern, 'u');
  } catch {
    return new RegExp(pattern);
  }
};

/** ajv tells patterns apart by their texts, and takes those of one text for one. */
const named =
  (patterns: PatternEngine): PatternEngine =>
  (pattern) => {
    const matcher = patterns(pattern);
    return { test: (text) => matcher.test(text), toString: () => pattern };
  };

/** A pattern that cannot be read says nothing about a text. */
const tolerant =
  (patterns: PatternEngine, ignored: Set<string>): PatternEngine =>
  (pattern) => {
    try {
      return patterns(pattern);
    } catch {
      ignored.add(pattern);
      return { test: () => true };
    }
  };

const draftOf = ({ $schema = 'draft/2020-12' }: JsonSchema, owner: string): typeof Ajv => {
  const id = String($schema);
  if (id.includes('draft/2020-12')) return Ajv2020;
  if (id.includes('draft/2019-09')) return Ajv2019;
  if (id.includes('draft-07')) return Ajv;
  throw misuse(`${owner}: '${id}' is not supported. Use draft 2020-12, 2019-09 or 07.`);
};

/** Branches that are looked at for one input: a hundred thousand take some tens of milliseconds. */
const mostBranches = 200_000;

interface Effort {
  readonly schema: JsonSchema;
  /** Gives what the check gives; `undefined` where it was given up. */
  within<T>(check: () => T): T | undefined;
}

/**
 * Bounds what it costs to check an input. Where branches (`anyOf`, `oneOf`) refer to the whole, each level of an input may double the
 * work, and twenty levels would stop the process. Other schemas are left as they are.
 */
const bounded = (schema: JsonSchema, ajv: Ajv): Effort => {
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
