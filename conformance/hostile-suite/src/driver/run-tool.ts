import { type Agent, createAgent, isMillraceError, type Layer, type Tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';

/** Attackers are models as well: this one calls a tool with an input of its choice. Resolves to what the model would read. */
export const outputOf = async (
  tools: readonly Tool[],
  name: string,
  input: Readonly<Record<string, unknown>>,
  use: readonly Layer[] = [],
): Promise<string> => {
  const model = scriptedModel([toolCall(name, input, 'call')], [text('Done.')]);
  const reply = await createAgent({ model, tools, use }).call('Go.');
  return reply.toolCalls[0]?.output ?? 'no tool call ran';
};

/** How a call ended: the reason of its reply, or the code of its error. Another error is named as such. */
export const endOf = (agent: Pick<Agent, 'call'>, input = 'Go.'): Promise<string> =>
  agent.call(input).then(({ reason }) => reason, codeOf);

/** Any value can be thrown, also one that throws when it is read. */
export const codeOf = (error: unknown): string => {
  try {
    return isMillraceError(error) ? error.code : `untyped ${String(error)}`;
  } catch {
    return 'untyped';
  }
};
