import type { Tool } from '@anthropic-ai/sdk/resources/messages';
import { type JsonSchema, MillraceError, type ToolDeclaration } from '@millrace/core';
import { type JsonText, jsonText, type Naming, writeObject } from '@millrace/wire';
import { onceEach } from './once-each.js';

/** What a schema of a tool's input becomes. */
interface ToolInput {
  readonly schema: JsonText;
  /** The name of a property that cannot be sent. */
  readonly bad: string | undefined;
}

/**
 * Makes what writes declarations of tools, the schema of each once. It throws `invalidRequest` for a property that
 * cannot be sent.
 */
export const toolDeclaration = (): ((tool: ToolDeclaration, naming: Naming) => string) => {
  const inputOf = onceEach(toInput);
  return ({ name, description, inputSchema }, { toolName }) => {
    const { schema, bad } = inputOf(inputSchema);
    if (bad !== undefined) throw refusal(name, bad);
    return writeObject({
      name: toolName(name),
      ...(description === '' ? {} : { description }),
      input_schema: schema,
    });
  };
};

const toInput = (schema: JsonSchema): ToolInput => ({
  schema: jsonText(JSON.stringify(toInputSchema(schema))),
  bad: Object.keys(schema['properties'] ?? {}).find((key) => !takenKey.test(key)),
});

/** What the API takes as a name of a property; it looks at those at the top only. */
const takenKey = /^[a-zA-Z0-9_.-]{1,64}$/u;

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
  const told = Object.entries({ anyOf, oneOf, allOf }).flatMap(([keyword, value]) =>
    value === undefined ? [] : [`${keyword}: ${JSON.stringify(value)}`],
  );
  const description = [schema['description'], ...told].filter(Boolean).join('\n');
  return { ...schema, ...(description === '' ? {} : { description }), type: 'object' };
};
