import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { ErrorObject } from 'ajv';
import { isRecord } from '../json.js';

export interface Problem {
  readonly path: readonly string[];
  readonly message: string;
  /** Absent where nothing is there. */
  readonly received?: unknown;
}

export const tooIntricate: readonly Problem[] = [
  { path: [], message: 'is too intricate to be checked' },
];

/** What is wrong with an input: an empty list where it is valid. */
export type Check = (input: unknown) => readonly Problem[];

/** Problems that are told; a model that gets a few things right gets the rest right, too. */
const maxProblems = 20;

const maxPath = 200;
const maxMessage = 300;
const maxReceived = 80;

/** Tells of problems, one line each: the parameter, the rule and the value. Of parameters that are hidden from the model it says nothing but that they are wrong. */
export const describe = (
  problems: readonly Problem[],
  hidden: Readonly<Record<string, unknown>> = {},
): readonly string[] => {
  const isHidden = ([name]: readonly string[]): boolean =>
    name !== undefined && Object.hasOwn(hidden, name);
  const hidesSome = Object.keys(hidden).length > 0;
  const told = problems.slice(0, maxProblems).map(({ path, message, ...rest }) => {
    if (isHidden(path))
      return `${cut(String(path[0]), maxPath)}: what the program gives for it is not valid`;
    // What a library says of the whole may name what is hidden.
    if (path.length === 0 && hidesSome) return 'the input: is not valid as a whole';
    const where = path.join('.') || 'the input';
    const said = message.startsWith(`${where} `) ? message.slice(where.length + 1) : message;
    const received = 'received' in rest ? shown(rest.received) : '';
    return `${cut(where, maxPath)}: ${cut(said, maxMessage)}${received}`;
  });
  const more = problems.length - told.length;
  return more > 0 ? [...told, `and ${more} more`] : told;
};

export const ofIssue = (
  { message, path = [] }: StandardSchemaV1.Issue,
  input: unknown,
): Problem => {
  // A plain list: that of arktype makes other ones of itself.
  const keys = Array.from(path, (segment) => (typeof segment === 'object' ? segment.key : segment));
  const received = keys.reduce<unknown>(
    (value, key) => (isRecord(value) || Array.isArray(value) ? Reflect.get(value, key) : undefined),
    input,
  );
  return { path: keys.map(String), message, received };
};

export const ofError = ({
  instancePath,
  keyword,
  params,
  message,
  data,
}: Omit<ErrorObject, 'schemaPath'>): Problem => {
  const path = instancePath.split('/').slice(1).map(unescaped);
  if (keyword === 'required') {
    return {
      path: [...path, String(params['missingProperty'])],
      message: 'is required, but missing',
    };
  }
  const allowed = keyword === 'enum' ? `: ${brief(params['allowedValues'], maxMessage)}` : '';
  return { path, message: `${message ?? keyword}${allowed}`, received: data };
};

export const ofInfinite = (path: readonly string[]): Problem => ({
  path,
  message: 'must be a number that is not too large',
});

export const notAt = (
  places: readonly (readonly string[])[],
  problems: readonly Problem[],
): readonly Problem[] => {
  if (places.length === 0) return problems;
  const known = new Set(places.map((path) => JSON.stringify(path)));
  return problems.filter(({ path }) => !known.has(JSON.stringify(path)));
};

export const unescaped = (key: string): string => key.replaceAll('~1', '/').replaceAll('~0', '~');

const shown = (value: unknown): string => {
  const text = value === undefined ? 'nothing' : brief(value, maxReceived + 1);
  return ` (received ${cut(text, maxReceived)})`;
};

const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;

const brief = (value: unknown, room: number): string => {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, room));
  if (typeof value !== 'object' || value === null) return String(value);
  const isList = Array.isArray(value);
  let text = isList ? '[' : '{';
  for (const key in value) {
    if (text.length > room) return text;
    const item = brief(Reflect.get(value, key), room - text.length);
    text += `${text.length > 1 ? ',' : ''}${isList ? '' : `${JSON.stringify(key.slice(0, room))}:`}${item}`;
  }
  return `${text}${isList ? ']' : '}'}`;
};
