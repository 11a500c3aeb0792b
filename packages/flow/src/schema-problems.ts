import { isRecord } from 'millrace/values';
import type { ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { didYouMean } from './did-you-mean.js';
import type { FlowDocument } from './document.js';
import { documentSchema } from './document-schema.js';
import { idRule, nameRule } from './ids.js';
import { type Finding, problemAt, truncate } from './problem.js';

const validate = new Ajv2020({
  allErrors: true,
  verbose: true,
  ownProperties: true,
  strictRequired: false,
}).compile<FlowDocument>(documentSchema);

export type SchemaResult =
  | { readonly document: FlowDocument; readonly faults?: undefined }
  | { readonly document?: undefined; readonly faults: readonly SchemaFault[] };

export interface SchemaFault extends Finding {
  /** The path of the invalid value. */
  readonly at: readonly string[];
  readonly unknownKey?: string;
}

/** Validates a JSON value against the document schema. */
export const readDocument = (value: unknown): SchemaResult =>
  validate(value)
    ? { document: value }
    : { faults: (validate.errors ?? []).filter(isSpecific).map(toFault) };

const toFault = (error: ErrorObject): SchemaFault => {
  const at = error.instancePath.split('/').slice(1).map(unescapePointer);
  const unknownKey: unknown = error.params['additionalProperty'];
  return { ...toProblem(error, at), at, ...(typeof unknownKey === 'string' && { unknownKey }) };
};

/** Errors of `if` and property names repeat more specific ones. */
const isSpecific = ({ keyword, propertyName }: ErrorObject): boolean =>
  keyword !== 'if' && propertyName === undefined;

const toProblem = (error: ErrorObject, path: readonly string[]): Finding => {
  const { keyword, data } = error;
  const params: Readonly<Record<string, unknown>> = error.params;
  switch (keyword) {
    case 'additionalProperties': {
      const key = String(params['additionalProperty']);
      return problemAt([...path, key], 'is not known', () =>
        didYouMean(key, keysOf(error), 'keys here'),
      );
    }
    case 'propertyNames': {
      const name = String(params['propertyName']);
      const [what, rule] = ruleOf(error);
      return problemAt([...path, name], `is not a valid ${what}`, rule);
    }
    case 'required':
      return problemAt([...path, String(params['missingProperty'])], 'is missing');
    case 'enum':
      return problemAt(path, `is ${display(data)}`, () =>
        didYouMean(String(data), listOf(params['allowedValues']), 'possible values', Infinity),
      );
    case 'const':
      return problemAt(
        path,
        `is ${display(data)}`,
        `It must be ${display(params['allowedValue'])}.`,
      );
    case 'type':
      return problemAt(path, `is ${kindOf(data)}`, `It must be ${kindNamed(params['type'])}.`);
    case 'pattern':
      return problemAt(path, `is ${display(data)}, which is not a valid id`, `An id is ${idRule}.`);
    case 'uniqueItems':
      return problemAt(path, 'contains duplicates');
    default:
      return problemAt(path, (error.message ?? keyword).replace('NOT', 'not'));
  }
};

/** The kind of name that a key is, and the rule for it. */
const ruleOf = ({ schema }: ErrorObject): readonly [what: string, rule: string] => {
  const rules: Readonly<Record<string, unknown>> = isRecord(schema) ? schema : {};
  if (rules['$ref'] === '#/$defs/id') return ['id', `An id is ${idRule}.`];
  if (rules['$ref'] === '#/$defs/name') return ['name', `A name is ${nameRule}.`];
  return 'pattern' in rules
    ? ['header', 'The name of a header has letters, digits and hyphens.']
    : ['name', 'A name has 1 to 100 characters.'];
};

const keysOf = ({ parentSchema }: ErrorObject): readonly string[] => {
  const properties: unknown = parentSchema?.['properties'];
  return isRecord(properties) ? Object.keys(properties) : [];
};

const listOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.map(String) : [];

const unescapePointer = (key: string): string => key.replaceAll('~1', '/').replaceAll('~0', '~');

const display = (value: unknown): string =>
  typeof value === 'string'
    ? JSON.stringify(truncate(value))
    : typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : kindOf(value);

const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return kindNamed(typeof value);
};

const kindNamed = (type: unknown): string => {
  switch (type) {
    case 'string':
      return 'a string';
    case 'array':
      return 'a list';
    case 'object':
      return 'an object';
    case 'integer':
      return 'a whole number';
    case 'boolean':
      return 'true or false';
    default:
      return `a ${String(type)}`;
  }
};
