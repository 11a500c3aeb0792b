import type { RequestOptions, ToolDeclaration } from 'millrace';
import { isRecord } from 'millrace/values';
import type { JsonRecord } from '@millrace/wire';

/** The input of a custom tool without a declaration of its own. */
export const defaultInput = 'input';

/** Returns the argument that the text input of a custom tool becomes: the only one that its schema has, else `input`. */
export const textInputOf = (tools: readonly ToolDeclaration[] = [], name: string): string => {
  const schema = tools.find((tool) => tool.name === name)?.inputSchema;
  const { properties } = schema ?? {};
  const [only, ...more] = isRecord(properties) ? Object.keys(properties) : [];
  return only === undefined || more.length > 0 ? defaultInput : only;
};

/** Returns the text input that the arguments of a call stand for. */
export const textOfInput = (input: JsonRecord): string => {
  const [only, ...more] = Object.values(input);
  return more.length === 0 && typeof only === 'string' ? only : JSON.stringify(input);
};

/** Whether a tool is declared as a custom tool of the vendor, which takes text. */
export const isCustom = (options: JsonRecord): boolean => options['type'] === 'custom';

/** Whether a forced tool is a custom one: such a choice has a type of its own. */
export const choosesCustom = (
  choice: RequestOptions['toolChoice'],
  tools: readonly ToolDeclaration[],
  vendor: string,
): boolean =>
  typeof choice === 'object' &&
  tools.some(
    ({ name, vendorOptions }) => name === choice.name && isCustom(vendorOptions?.[vendor] ?? {}),
  );
