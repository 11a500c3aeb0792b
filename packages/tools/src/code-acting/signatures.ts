import type { JsonSchema, Tool } from 'millrace';
import { isRecord } from 'millrace/values';

/** In characters. */
const maxNote = 100;
const maxDepth = 5;
const maxMembers = 30;

/**
 * Describes tools as TypeScript functions, one per line, in about `maxLength` characters. The last ones may have their
 * names only.
 */
export const signaturesOf = (tools: readonly Tool[], maxLength: number): string => {
  let room = maxLength;
  const lines = tools.map((tool) => signatureOf(tool));
  const fitting = lines.filter((line) => (room -= line.length + 1) >= 0);
  const left = tools.filter((_, index) => !fitting.includes(lines[index] ?? ''));
  const names = left.map(({ name }) => accessOf(name)).join(', ');
  return left.length === 0
    ? fitting.join('\n')
    : [...fitting, `Also ${names}: call one without parameters to see its errors.`].join('\n');
};

const signatureOf = ({ name, description, inputSchema }: Tool): string => {
  const root = definitionsOf(inputSchema);
  const input = typeOf(inputSchema, root, 0);
  return `${accessOf(name)}(${input === '{}' ? '' : `input: ${input}`}) // ${oneLine(description, 300)}`;
};

const isIdentifier = (name: string): boolean => /^[A-Za-z_$][\w$]*$/u.test(name);

const accessOf = (name: string): string =>
  isIdentifier(name) ? `tools.${name}` : `tools[${JSON.stringify(name)}]`;

const oneLine = (text: string, maxLength: number): string => {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line;
};

type Definitions = ReadonlyMap<string, unknown>;

const definitionsOf = (schema: JsonSchema): Definitions =>
  new Map(
    ['$defs', 'definitions'].flatMap((place) => {
      const all = schema[place];
      return isRecord(all)
        ? Object.entries(all).map(([name, value]) => [`#/${place}/${name}`, value] as const)
        : [];
    }),
  );

/** The TypeScript type of a JSON Schema, or `unknown`: the validation of the tool has the last word. */
const typeOf = (schema: unknown, definitions: Definitions, depth: number): string => {
  if (!isRecord(schema) || depth > maxDepth) return 'unknown';
  const inner = (part: unknown): string => typeOf(part, definitions, depth + 1);
  const { $ref, enum: values, anyOf, oneOf, allOf, type } = schema;
  if (typeof $ref === 'string') return inner(definitions.get($ref));
  if ('const' in schema) return JSON.stringify(schema['const']);
  if (Array.isArray(values)) return union(values.map((value: unknown) => JSON.stringify(value)));
  const choices = [anyOf, oneOf].find(Array.isArray);
  if (choices !== undefined) return union(choices.map(inner));
  if (Array.isArray(allOf)) return [...new Set(allOf.map(inner))].join(' & ');
  if (Array.isArray(type)) {
    return union(type.map((each: unknown) => inner({ ...schema, type: each })));
  }
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type;
    case 'number':
    case 'integer':
      return 'number';
    case 'array': {
      const item = inner(schema['items']);
      return / [|&] /u.test(item) && !item.startsWith('{') ? `(${item})[]` : `${item}[]`;
    }
    default:
      return isRecord(schema['properties']) || type === 'object'
        ? objectType(schema, inner)
        : 'unknown';
  }
};

const union = (types: readonly string[]): string => {
  const all = [...new Set(types)];
  const shown = all.slice(0, maxMembers).join(' | ');
  return all.length > maxMembers ? `${shown} | unknown` : shown;
};

const objectType = (
  { properties, required, additionalProperties }: Readonly<Record<string, unknown>>,
  inner: (part: unknown) => string,
): string => {
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  const fields = Object.entries(isRecord(properties) ? properties : {}).map(([name, schema]) => {
    const key = isIdentifier(name) ? name : JSON.stringify(name);
    const mark = needed.includes(name) ? '' : '?';
    return `${key}${mark}: ${inner(schema)}${noteOf(schema)}`;
  });
  if (fields.length > 0) return `{ ${fields.join('; ')} }`;
  return isRecord(additionalProperties) ? `Record<string, ${inner(additionalProperties)}>` : '{}';
};

const noteOf = (schema: unknown): string => {
  const description = isRecord(schema) ? schema['description'] : undefined;
  if (typeof description !== 'string' || description.trim() === '') return '';
  return ` /* ${oneLine(description, maxNote).replaceAll('*/', '* /')} */`;
};
