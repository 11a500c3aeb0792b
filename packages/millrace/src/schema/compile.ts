import { Ajv, type Options } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { defer, map, type Observable, shareReplay } from 'rxjs';
import { messageOf, misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import type { JsonSchema } from '../values/schema.js';
import { type Check, ofError, tooIntricate, uniqueItems } from './problems.js';

/** Compiles a pattern, or throws if the engine does not support it. */
export type PatternEngine = (pattern: string) => { test(text: string): boolean };

export interface Compiled {
  /** Absent if the platform compiles no code. */
  readonly check: Check | undefined;
  /** Loads and emits an interpreter that needs no code generation. */
  readonly check$: Observable<Check | undefined>;
  /** Patterns that the engine does not support: they are ignored. */
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

/** One instance per draft checks schemas against their meta-schema. It stores none of them. */
const metaValidators = new Map<typeof Ajv, Ajv>();

/** A new instance per schema: a shared one would reject a repeated `$id`, and keep every schema. */
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
  // ajv caches patterns by their text.
  const engine = (pattern: string) => {
    const matcher = matcherOf(pattern);
    return { test: (text: string) => matcher.test(text), toString: () => pattern };
  };
  const options: Options = {
    ...ajvOptions,
    meta: JSON.stringify(schema).includes('"$ref":"http'),
    validateSchema: false,
    // Only used for validators that are written to a file.
    code: { regExp: Object.assign(engine, { code: 'undefined' }) },
  };
  if ('$async' in schema) throw misuse("jsonSchema(): the schema must not have '$async'.");
  // `$schema` was handled above: ajv knows one spelling of each draft.
  const { $schema: _draft, ...rules } = schema;
  const usable = (make: () => Check): Check | undefined => {
    try {
      return make();
    } catch (cause) {
      if (cause instanceof EvalError) return undefined;
      throw misuse(`jsonSchema(): the schema is not a valid JSON Schema: ${messageOf(cause)}.`);
    }
  };
  const check = usable(() => {
    if (meta.validateSchema(rules) !== true) throw new Error(meta.errorsText());
    const ajv = instanceOf(Draft, options);
    const effort = { left: 0 };
    const validate = ajv.compile(bounded(rules, ajv, effort));
    return (input: unknown) => {
      effort.left = mostReferences;
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

/** JSON Schema requires the flag `u`; many patterns are written for engines without it. */
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

/** Maximum number of references followed per input; 100,000 take some tens of milliseconds. */
const mostReferences = 200_000;
const exhausted = new Error();

/**
 * Bounds the cost of a check. If two places refer to the same part, each level of a schema or an input may double the
 * work. Schemas without references stay unchanged.
 */
const bounded = (schema: JsonSchema, ajv: Ajv, effort: { left: number }): JsonSchema => {
  if (!/"\$(ref|recursiveRef|dynamicRef)"/.test(JSON.stringify(schema))) return schema;
  const validate = (): boolean => {
    effort.left -= 1;
    if (effort.left < 0) throw exhausted;
    return true;
  };
  ajv.addKeyword({ keyword, errors: false, validate });
  return withKeyword(schema);
};

const keyword = 'millraceReference';

/** Adds a keyword to each reference. Data that looks like references, as in an `enum`, stays unchanged. */
const withKeyword = (schema: JsonSchema): JsonSchema => {
  const part = (it: unknown): unknown => (isRecord(it) ? withKeyword(it) : it);
  const entries = Object.entries(schema).map(([key, value]): readonly [string, unknown] => {
    if (/^(enum|const|default|examples)$/.test(key)) return [key, value];
    return [key, Array.isArray(value) ? value.map(part) : part(value)];
  });
  const refers = Object.entries(schema).some(
    ([key, value]) => typeof value === 'string' && /^\$(ref|recursiveRef|dynamicRef)$/.test(key),
  );
  return { ...Object.fromEntries(entries), ...(refers && { [keyword]: true }) };
};
