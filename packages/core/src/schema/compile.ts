import { Ajv, type Options } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { defer, map, type Observable, shareReplay } from 'rxjs';
import { messageOf, misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import type { JsonSchema } from '../values/schema.js';
import { type Check, ofError, tooIntricate } from './problems.js';
import { uniqueItems } from './unique-items.js';

/** Makes what tells whether a text matches a pattern, or throws where it cannot read the pattern. */
export type PatternEngine = (pattern: string) => { test(text: string): boolean };

export interface Compiled {
  /** Absent if the platform compiles no code. */
  readonly check: Check | undefined;
  /** Loads what does without, and emits it. */
  readonly check$: Observable<Check | undefined>;
  /** Patterns that the engine cannot read: they are passed over. */
  readonly ignored: ReadonlySet<string>;
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
export const compile = (schema: JsonSchema, patterns: PatternEngine | undefined): Compiled => {
  const Draft = draftOf(schema);
  const meta = metaValidators.get(Draft) ?? instanceOf(Draft, ajvOptions);
  metaValidators.set(Draft, meta);
  const ignored = new Set<string>();
  const matcherOf = (pattern: string): ReturnType<PatternEngine> => {
    try {
      return (patterns ?? native)(pattern);
    } catch (cause) {
      if (patterns === undefined) throw cause;
      ignored.add(pattern);
      return { test: () => true };
    }
  };
  // ajv tells patterns apart by their texts, and takes those of one text for one.
  const engine = (pattern: string) => {
    const matcher = matcherOf(pattern);
    return { test: (text: string) => matcher.test(text), toString: () => pattern };
  };
  const options: Options = {
    ...ajvOptions,
    meta: JSON.stringify(schema).includes('"$ref":"http'),
    validateSchema: false,
    // The code is for validators that are written to a file, which these are not.
    code: { regExp: Object.assign(engine, { code: 'undefined' }) },
  };
  if ('$async' in schema) throw misuse("jsonSchema(): the schema must not say '$async'.");
  // What is said of the draft is understood above: ajv knows each by one spelling alone.
  const { $schema: _draft, ...rules } = schema;
  const usable = (make: () => Check): Check | undefined => {
    try {
      return make();
    } catch (cause) {
      if (cause instanceof EvalError) return undefined;
      throw misuse(`jsonSchema(): the schema is not a usable JSON Schema: ${messageOf(cause)}.`);
    }
  };
  const check = usable(() => {
    if (meta.validateSchema(rules) !== true) throw new Error(meta.errorsText());
    const ajv = instanceOf(Draft, options);
    const effort = { left: 0 };
    const validate = ajv.compile(bounded(rules, ajv, effort));
    return (input: unknown) => {
      effort.left = mostBranches;
      try {
        return validate(input) ? [] : (validate.errors ?? []).map(ofError);
      } catch (cause) {
        if (cause === exhausted) return tooIntricate;
        throw cause;
      }
    };
  });
  const check$ = defer(() => import('./interpret.js')).pipe(
    map(({ interpret }) => usable(() => interpret(rules, meta, engine))),
    shareReplay({ bufferSize: 1, refCount: false }),
  );
  return { check, check$, ignored };
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

const draftOf = ({ $schema = 'draft/2020-12' }: JsonSchema): typeof Ajv => {
  const id = String($schema);
  if (id.includes('draft/2020-12')) return Ajv2020;
  if (id.includes('draft/2019-09')) return Ajv2019;
  if (id.includes('draft-07')) return Ajv;
  throw misuse(`jsonSchema(): '${id}' is not supported. Use draft 2020-12, 2019-09 or 07.`);
};

/** Branches that are looked at for one input: a hundred thousand take some tens of milliseconds. */
const mostBranches = 200_000;
const exhausted = new Error();

/** Bounds what it costs to check an input. Where branches (`anyOf`, `oneOf`) refer to the whole, each level of an input may double the work, and twenty levels would stop the process. Other schemas are left as they are. */
const bounded = (schema: JsonSchema, ajv: Ajv, effort: { left: number }): JsonSchema => {
  const text = JSON.stringify(schema);
  const mayExplode = /"\$(recursive|dynamic)?[Rr]ef"/.test(text) && /"(any|one)Of"/.test(text);
  if (!mayExplode) return schema;
  const validate = (): boolean => {
    effort.left -= 1;
    if (effort.left < 0) throw exhausted;
    return true;
  };
  ajv.addKeyword({ keyword, errors: false, validate });
  return withKeyword(schema);
};

const keyword = 'millraceBranch';

/** The schema with a mark in each branch. Data that looks like branches, as in an `enum`, stays what it is. */
const withKeyword = (schema: JsonSchema, above = ''): JsonSchema => {
  const entries = Object.entries(schema).map(([key, value]): readonly [string, unknown] => {
    const part = (it: unknown): unknown => (isRecord(it) ? withKeyword(it, key) : it);
    if (/^(enum|const|default|examples)$/.test(key)) return [key, value];
    return [key, Array.isArray(value) ? value.map(part) : part(value)];
  });
  return {
    ...Object.fromEntries(entries),
    ...(/^(any|one)Of$/.test(above) && { [keyword]: true }),
  };
};
