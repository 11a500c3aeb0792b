import {
  createAgent,
  history,
  type Input,
  type InputMessage,
  MillraceError,
  type Model,
  output,
  type Reply,
  textBlock,
  textOf,
} from 'millrace';
import { defined, isRecord } from 'millrace/values';
import { jsonSchema } from 'millrace/schema';
import { defer, map } from 'rxjs';
import { toolsOf } from '../component-problems.js';
import type { AgentParams } from '../document.js';
import { render, templateOf } from '../render.js';
import type { CompileOptions } from '../resources.js';
import type { Output, Scope } from '../scope.js';
import { templatesOf } from '../templates-of.js';
import { childCall, toResult, textOutput, type Work } from '../work.js';

/** Calls an agent, as a child of the flow's call with the component's ID. */
export const agentWork = (
  id: string,
  params: AgentParams,
  model: Model,
  { resources }: CompileOptions,
): Work => {
  const { sys_prompt = '', output: schema, max_rounds, temperature, max_tokens } = params;
  const { message_history_window_size: size = 0 } = params;
  const tools = toolsOf(params, resources);
  const system = templateOf(sys_prompt);
  const settings = {
    request: defined({ temperature, maxTokens: max_tokens }),
    limits: defined({ maxIterations: max_rounds }),
  };
  const form = schema && output(jsonSchema(schema));
  const inputOf = createInputOf(params);
  const sourcesOf = createSourcesOf(params);
  return (scope) =>
    defer(() => {
      const instructions = render(system, scope);
      const agent = createAgent({
        ...{ name: id, model, tools, ...settings },
        ...(instructions !== '' && { instructions }),
        ...(form && { use: [form] }),
      });
      const recent = size === 0 ? [] : scope.sys.history.slice(-size);
      return agent.call$(inputOf(scope), { ...childCall(id, scope), use: [history(recent)] });
    }).pipe(
      map((reply) => ({ ...reply, ...sourcesOf(scope) })),
      map((reply) => toResult(reply, schema === undefined ? textOutput : structuredOutput)),
    );
};

/** The passages that the agent can cite, if they are of one retrieval: in several lists, numbers would be ambiguous. */
const createSourcesOf = (params: AgentParams): ((scope: Scope) => Pick<Reply, 'sources'>) => {
  const ids = templatesOf({ component_name: 'agent', params }).flatMap(({ text }) =>
    templateOf(text).flatMap((part) =>
      typeof part === 'object' && part.of === 'component' && part.path.length === 0 ? part.id : [],
    ),
  );
  return ({ outputs }) => {
    const lists = [...new Set(ids)].flatMap((id) => {
      const { passages = [] } = outputs.get(id) ?? {};
      return passages.length > 0 ? [passages] : [];
    });
    const [sources, ...others] = lists;
    return sources !== undefined && others.length === 0 ? { sources } : {};
  };
};

const structuredOutput = (reply: Reply): Output => {
  if (!isRecord(reply.output)) {
    throw new MillraceError(
      'invalidResponse',
      `The answer does not match the 'output' schema: the call ended with the reason '${reply.reason}'.`,
      { partial: textOf(reply) },
    );
  }
  return { text: JSON.stringify(reply.output), value: reply.output, reply };
};

const createInputOf = ({ prompts }: AgentParams): ((scope: Scope) => Input) => {
  const templates = prompts?.map(({ role, content }) => ({ role, template: templateOf(content) }));
  return (scope) => {
    if (templates === undefined) return scope.input;
    const messages = templates.flatMap(({ role, template }): readonly InputMessage[] => {
      const text = render(template, scope);
      const content = [textBlock(text)];
      if (text.trim() === '') return [];
      return [role === 'user' ? { role, content } : { role, content }];
    });
    if (messages.length > 0) return messages;
    throw new MillraceError('invalidRequest', 'All its prompts are empty.');
  };
};
