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
} from '@millrace/core';
import { defined, isRecord } from '@millrace/core/adapter';
import { jsonSchema } from '@millrace/core/schema';
import { defer, map } from 'rxjs';
import { toolsOf } from '../component-problems.js';
import type { AgentParams } from '../document.js';
import { render, templateOf } from '../render.js';
import type { Equipment } from '../resources.js';
import type { Output, Scope } from '../scope.js';
import { templatesOf } from '../templates-of.js';
import { childCall, textOutput, type Work, workedBy } from '../work.js';

/** Calls an agent: below the call of the flow, under the id of the component. */
export const agentWork = (
  id: string,
  params: AgentParams,
  model: Model,
  { resources }: Equipment,
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
  const inputOf = asks(params);
  const sourcesOf = shows(params);
  return (scope) =>
    defer(() => {
      const instructions = render(system, scope);
      const agent = createAgent({
        ...{ name: id, model, tools, ...settings },
        ...(instructions !== '' && { instructions }),
        ...(form && { use: [form] }),
      });
      const said = size === 0 ? [] : scope.sys.history.slice(-size);
      return agent.call$(inputOf(scope), { ...childCall(id, scope), use: [history(said)] });
    }).pipe(
      map((reply) => ({ ...reply, ...sourcesOf(scope) })),
      map((reply) => workedBy(reply, schema === undefined ? textOutput : structuredOutput)),
    );
};

/** What the agent can cite: of several lists of passages, a number would not say of which it is. */
const shows = (params: AgentParams): ((scope: Scope) => Pick<Reply, 'sources'>) => {
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

/** What it says where its form was given. */
const structuredOutput = (reply: Reply): Output => {
  if (!isRecord(reply.output)) {
    throw new MillraceError(
      'invalidResponse',
      `It has not answered in the form of its 'output': it ended with the reason '${reply.reason}'.`,
      { partial: textOf(reply) },
    );
  }
  return { text: JSON.stringify(reply.output), value: reply.output, reply };
};

const asks = ({ prompts }: AgentParams): ((scope: Scope) => Input) => {
  const templates = prompts?.map(({ role, content }) => ({ role, template: templateOf(content) }));
  return (scope) => {
    if (templates === undefined) return scope.asked;
    const asked = templates.flatMap(({ role, template }): readonly InputMessage[] => {
      const text = render(template, scope);
      const content = [textBlock(text)];
      if (text.trim() === '') return [];
      return [role === 'user' ? { role, content } : { role, content }];
    });
    if (asked.length > 0) return asked;
    throw new MillraceError(
      'invalidRequest',
      'All its prompts are empty: there is nothing to ask.',
    );
  };
};
