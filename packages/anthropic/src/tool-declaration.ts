import type { Tool } from '@anthropic-ai/sdk/resources/messages';
import { type JsonSchema, MillraceError, type ToolDeclaration } from 'millrace';
import {
  memoizeByObject,
  type RawJson,
  rawJson,
  stringifyObject,
  type WireNames,
} from '@millrace/wire';

import { vendor } from './vendor-block.js';

interface ToolInput {
  readonly schema: RawJson;
  /** The name of a property that the API rejects. */
  readonly invalidKey: string | undefined;
}

/** Creates a serializer of tools. It throws `invalidRequest` for a property name that the API rejects. */
export const toolDeclaration = (): ((tool: ToolDeclaration, naming: WireNames) => string) => {
  const inputOf = memoizeByObject(toInput);
  return ({ name, description, inputSchema, vendorOptions }, { toolName }) => {
    const { schema, invalidKey: bad } = inputOf(inputSchema);
    if (bad !== undefined) throw refusal(name, bad);
    return stringifyObject({
      name: toolName(name),
      ...(description === '' ? {} : { description }),
      input_schema: schema,
      ...vendorOptions?.[vendor],
    });
  };
};

const toInput = (schema: JsonSchema): ToolInput => ({
  schema: rawJson(JSON.stringify(toInputSchema(schema))),
  invalidKey: Object.keys(schema['properties'] ?? {}).find((key) => !validKey.test(key)),
});

/** Property names that the API accepts. It only checks those at the top level. */
const validKey = /^[a-zA-Z0-9_.-]{1,64}$/u;

const refusal = (tool: string, property: string): MillraceError => {
  const what = `The input of the tool '${tool}' has a property '${property.slice(0, 80)}', which the API rejects.`;
  return new MillraceError(
    'invalidRequest',
    `${what} Use up to 64 letters, digits, '_', '.' and '-' in its name.`,
  );
};

/** Moves `anyOf`, `oneOf` and `allOf`, which the API rejects at the top level, to the description. */
const toInputSchema = ({ anyOf, oneOf, allOf, ...schema }: JsonSchema): Tool.InputSchema => {
  const moved = Object.entries({ anyOf, oneOf, allOf }).flatMap(([keyword, value]) =>
    value === undefined ? [] : [`${keyword}: ${JSON.stringify(value)}`],
  );
  const description = [schema['description'], ...moved].filter(Boolean).join('\n');
  return { ...schema, ...(description === '' ? {} : { description }), type: 'object' };
};
