import type { Tool } from '@anthropic-ai/sdk/resources/messages';
import { type JsonSchema, MillraceError, type ToolDeclaration } from '@millrace/core';
import { type RawJson, rawJson, stringifyObject, type WireNames } from '@millrace/wire';
import { memoizeByObject } from './memoize-by-object.js';

/** What a schema of a tool's input becomes. */
interface ToolInput {
  readonly schema: RawJson;
  /** The name of a property that cannot be sent. */
  readonly invalidKey: string | undefined;
}

/**
 * Makes what writes declarations of tools, the schema of each once. It throws `invalidRequest` for a property that
 * cannot be sent.
 */
export const toolDeclaration = (): ((tool: ToolDeclaration, naming: WireNames) => string) => {
  const inputOf = memoizeByObject(toInput);
  return ({ name, description, inputSchema }, { toolName }) => {
    const { schema, invalidKey: bad } = inputOf(inputSchema);
    if (bad !== undefined) throw refusal(name, bad);
    return stringifyObject({
      name: toolName(name),
      ...(description === '' ? {} : { description }),
      input_schema: schema,
    });
  };
};

const toInput = (schema: JsonSchema): ToolInput => ({
  schema: rawJson(JSON.stringify(toInputSchema(schema))),
  invalidKey: Object.keys(schema['properties'] ?? {}).find((key) => !validKey.test(key)),
});

/** What the API takes as a name of a property; it looks at those at the top only. */
const validKey = /^[a-zA-Z0-9_.-]{1,64}$/u;

const refusal = (tool: string, property: string): MillraceError => {
  const what = `The input of the tool '${tool}' has a property '${property.slice(0, 80)}', which cannot be sent.`;
  return new MillraceError(
    'invalidRequest',
    `${what} Its name may have letters, digits, '_', '.' and '-', and at most 64 of them.`,
  );
};

/**
 * The API takes no choice of schemas at the top. The model is told of it; whoever validates the input looks after
 * it.
 */
const toInputSchema = ({ anyOf, oneOf, allOf, ...schema }: JsonSchema): Tool.InputSchema => {
  const moved = Object.entries({ anyOf, oneOf, allOf }).flatMap(([keyword, value]) =>
    value === undefined ? [] : [`${keyword}: ${JSON.stringify(value)}`],
  );
  const description = [schema['description'], ...moved].filter(Boolean).join('\n');
  return { ...schema, ...(description === '' ? {} : { description }), type: 'object' };
};
