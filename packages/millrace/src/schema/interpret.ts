import * as interpreter from '@cfworker/json-schema';
import type { Ajv } from 'ajv';
import { isRecord, parsedJson } from '../values/json.js';
import type { JsonSchema, Problem } from '../values/schema.js';
import { type Check, duplicateIn, ofError, tooIntricate, unescaped } from './problems.js';

type Unit = interpreter.OutputUnit;
type PatternEngine = (pattern: string) => { test(text: string): boolean };

/** Maximum number of schemas evaluated per input, and of characters of compared items: some tenths of a second. */
const mostSchemas = 500_000;
const mostToCompare = 10_000;
const tooMuch = new Error('The schema takes too long to check.');

/** Checks inputs on platforms without code generation. `ajv` provides keywords, meta-schemas and messages. */
export const interpret = (schema: JsonSchema, ajv: Ajv, patterns: PatternEngine): Check => {
  const [draft = ''] = Object.keys(ajv.schemas);
  const faults = checker({ $ref: draft }, draft, ajv, patterns)(schema);
  if (faults.length === 0) return checker(schema, draft, ajv, patterns);
  const lines = faults.map(({ path, message }) => `${['data', ...path].join('/')} ${message}`);
  throw new Error(lines.join(', '));
};

const checker = (source: JsonSchema, draft: string, ajv: Ajv, patterns: PatternEngine): Check => {
  let left = Infinity;
  let keys: readonly string[] = [];
  const formats: Record<string, (text: string) => boolean> = {};

  /** Adapts a schema to the interpreter (no limits, one draft, own patterns): patterns become formats or matching keys. */
  const copied = (it: unknown, whole?: string): interpreter.Schema | boolean => {
    if (!isRecord(it)) return it !== false;
    const part = (value: unknown): unknown => (isRecord(value) ? copied(value, whole) : value);
    const entry = ([keyword, value]: readonly [string, unknown]): readonly [string, unknown] => {
      if (keyword === 'pattern' && typeof value === 'string') {
        const matcher = patterns(value);
        formats[`/${value}/`] = (text) => matcher.test(text);
        return ['format', `/${value}/`];
      }
      if (/^\$(dynamic|recursive)Ref$/.test(keyword)) return ['$ref', whole ?? value];
      if (keyword === '$dynamicAnchor') return ['$anchor', value];
      if (/^(enum|const|default|examples)$/.test(keyword)) return [keyword, value];
      if (Array.isArray(value)) return [keyword, value.map(part)];
      if (!isRecord(value) || !maps.has(keyword)) return [keyword, part(value)];
      return [keyword, Object.fromEntries(Object.entries(value).map(([k, of]) => [k, part(of)]))];
    };
    const isKnown = (keyword: string) => !later.test(keyword) || ajv.getKeyword(keyword) !== false;
    const known = Object.entries(it).filter(
      ([keyword]) => keyword !== 'format' && isKnown(keyword),
    );
    const schema: interpreter.Schema = Object.fromEntries(known.map(entry));
    // Without it, the interpreter does not report problems of items.
    if (schema.contains !== undefined) schema.minContains ??= 1;
    const { type, patternProperties = {} } = schema;
    const matchers = Object.entries(patternProperties).map(
      ([pattern, rule]: readonly [string, unknown]) => [patterns(pattern), rule] as const,
    );
    const matching = (
      [matcher, rule]: (typeof matchers)[number],
      index: number,
    ): readonly [string, unknown] => {
      const some = keys.filter((key) => matcher.test(key)).map(exactly);
      return [[`(?!)${index}`, ...some].join('|'), rule];
    };
    const counted = (): unknown => {
      left -= 1;
      if (left < 0) throw tooMuch;
      return type;
    };
    return Object.defineProperties(schema, {
      type: { get: counted },
      ...(matchers.length > 0 && {
        patternProperties: { get: () => Object.fromEntries(matchers.map(matching)) },
      }),
    });
  };

  const schema = copied(source);
  const lookup = interpreter.dereference(schema);
  for (const meta of Object.values(ajv.schemas)) {
    interpreter.dereference(copied(meta?.schema, draft), lookup);
  }
  for (const it of Object.values(lookup)) {
    if (isRecord(it) && it.__absolute_ref__ !== undefined && !(it.__absolute_ref__ in lookup)) {
      throw new Error(`can't resolve reference ${String(it.$ref)}`);
    }
  }
  const text = JSON.stringify(source);
  const comparesItems = text.includes('"uniqueItems":true');
  return (input) => {
    try {
      const json = asJson(input);
      if (comparesItems && JSON.stringify(json).length > mostToCompare) throw tooMuch;
      left = mostSchemas;
      keys = text.includes('"patternProperties"') ? keysIn(json) : [];
      Object.assign(interpreter.format, formats);
      const { valid, errors } = interpreter.validate(json, schema, '2020-12', lookup, false);
      if (valid) return [];
      left = Infinity;
      const problems = inOrder(errors).flatMap(explaining(ajv, schema, lookup, input));
      return problems.length > 0 ? problems : [{ path: [], message: 'is not valid' }];
    } catch {
      return tooIntricate;
    } finally {
      for (const name in formats) Reflect.deleteProperty(interpreter.format, name);
    }
  };
};

const maps = new Set([...Object.keys(interpreter.schemaMapKeyword), 'dependencies']);

/** Keywords that are missing in some drafts. */
const later =
  /^(prefixItems|additionalItems|(min|max)Contains|dependent\w+|unevaluated\w+|\$(dynamic|recursive)\w+)$/;

const exactly = (key: string): string =>
  `^${key.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)}$`;

/** Values of the program may not be JSON: drops `undefined`; other values have no type of JSON Schema. */
const asJson = (input: unknown): unknown => {
  if (!isRecord(input)) return input;
  const isJson = (value: unknown): boolean =>
    typeof value === 'number' ? Number.isFinite(value) : /object|string|boolean/.test(typeof value);
  const there = Object.entries(input).filter(([, value]) => value !== undefined);
  return Object.fromEntries(there.map(([key, value]) => [key, isJson(value) ? value : {}]));
};

const keysIn = (value: unknown): readonly string[] =>
  Array.isArray(value) || isRecord(value)
    ? Object.entries(value).flatMap(([key, it]) => [key, ...keysIn(it)])
    : [];

/** As in ajv, problems of parts come before those of the whole. */
const inOrder = (units: readonly Unit[]): readonly Unit[] => {
  const ordered: Unit[] = [];
  const wholes: Unit[] = [];
  for (const unit of units) {
    const isPart = ({ keyword, keywordLocation }: Unit): boolean =>
      unit.keyword === 'false' ||
      (keyword === 'if' ? ['then', 'else'] : [keyword]).some((place) =>
        unit.keywordLocation.startsWith(keywordLocation.replace(/[^/]*$/, `${place}/`)),
      );
    while (!wholes.slice(-1).every(isPart)) ordered.push(...wholes.splice(-1));
    wholes.push(unit);
  }
  return [...ordered, ...wholes.reverse()];
};

/** Keywords whose units only contain other problems. */
const containers =
  /^(\$ref|allOf|properties|patternProperties|dependentSchemas|prefixItems|items|additionalItems|unevaluatedItems)$/;

/** The message of a unit, in ajv's words if they only need the value of the keyword. */
const explaining =
  (ajv: Ajv, schema: unknown, lookup: Readonly<Record<string, unknown>>, input: unknown) =>
  (unit: Unit, index: number, units: readonly Unit[]): readonly Problem[] => {
    const { keyword, keywordLocation, instanceLocation, error } = unit;
    const valueAt = (location: string, start: unknown): unknown =>
      location.split('/').reduce<unknown>((from, segment) => {
        if (segment === '#' || typeof from !== 'object' || from === null) return from;
        const address: unknown = segment === '$ref' && Reflect.get(from, '__absolute_ref__');
        if (typeof address === 'string') return lookup[address];
        return Reflect.get(from, unescaped(decodeURIComponent(segment)));
      }, start);
    // The interpreter misspells one location.
    const value = valueAt(keywordLocation.replace(/[^/]*$/, keyword), schema);
    const [, above = '', key = ''] = /^(.*)\/(.*)$/s.exec(instanceLocation) ?? [];
    const isName = /(?<!\/properties)\/propertyNames\//.test(keywordLocation);
    const data = isName ? unescaped(decodeURIComponent(key)) : valueAt(instanceLocation, input);
    const instancePath = decodeURIComponent((isName ? above : instanceLocation).slice(1));
    const named = /"(.*?)"(?: but does| schema\.$|\.$)/s.exec(error)?.[1] ?? '';
    const problem = (message: unknown, params = {}, name = keyword): readonly Problem[] => [
      ofError({ instancePath, keyword: name, message: String(message), params, data }),
    ];
    const explain = (
      params: object = {},
      name = keyword,
      schemaCode = value,
    ): readonly Problem[] => {
      const known = ajv.getKeyword(name);
      const words: unknown = typeof known === 'object' ? known.error?.message : undefined;
      const cxt = { keyword: name, schemaCode, params };
      const message: unknown =
        typeof words === 'function'
          ? parsedJson(String(Reflect.apply(words, undefined, [cxt])))
          : (words ?? error);
      return problem(message, params, name);
    };
    switch (keyword) {
      case 'type':
        return problem(`must be ${String(value)}`);
      case 'enum':
        return explain({ allowedValues: value });
      case 'required':
        return explain({ missingProperty: named });
      case 'format':
        return explain({}, 'pattern', String(value).slice(1, -1));
      case 'if':
        return explain({ ifClause: named });
      case 'contains':
        return [];
      case 'minContains':
        return explain({ min: value }, 'contains');
      case 'dependencies':
      case 'dependentRequired': {
        const names = isRecord(value) ? value[named] : undefined;
        if (!Array.isArray(names)) return [];
        return explain({ property: named, depsCount: names.length, deps: names.join(', ') });
      }
      case 'uniqueItems':
        return problem(Array.isArray(data) ? duplicateIn(data)?.message : error);
      case 'additionalProperties':
      case 'unevaluatedProperties':
        return value === false ? explain() : [];
      case 'false':
        return /^(additional|unevaluated)P/.test(units[index + 1]?.keyword ?? '')
          ? []
          : problem('boolean schema is false');
      default:
        return containers.test(keyword) ? [] : explain();
    }
  };
