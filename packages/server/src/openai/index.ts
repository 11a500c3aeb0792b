import { checkOptions, isText } from '@millrace/core/values';
import { defer, of } from 'rxjs';
import { type ChatProtocol, isPath, type Route } from '../chat/protocol.js';
import { namesOf } from '../client-tools.js';
import { askedForLayers } from './asked-for.js';
import { chatCompletionRoutes } from './chat-completions.js';
import { refusal, refuse } from './refusals.js';
import { responseRoutes } from './responses.js';

/** Options of `openAi`. */
export interface OpenAiOptions {
  /** The path of the routes. Default: `/v1`. */
  readonly path?: string;
  /** The name of the agent as a model. Default: that of the agent. */
  readonly model?: string;
}

/**
 * Serves clients of the OpenAI API: `chatServer(agent, { protocols: [openAi()] })`. The agent is a model of its name, for
 * chat completions, which keep nothing, and for responses, which continue conversations.
 */
export const openAi = (options: OpenAiOptions = {}): ChatProtocol => {
  checkOptions('openAi()', options, { path: isPath, model: isText });
  const path = (options.path ?? '/v1').replace(/\/+$/u, '');
  const protocol: ChatProtocol = ({ agent, masks }) => {
    const model = options.model ?? agent.name;
    const served = { model, toolNames: new Set(namesOf(agent.tools)) };
    return [
      ...modelRoutes(path, model),
      ...chatCompletionRoutes(path, served, masks),
      ...responseRoutes(path, served, masks),
    ];
  };
  return Object.assign(protocol, { use: askedForLayers });
};

const modelRoutes = (path: string, id: string): readonly Route[] => {
  const created = Math.floor(Date.now() / 1_000);
  const model = { id, object: 'model', created, owned_by: 'millrace' };
  return [
    {
      method: 'GET',
      path: `${path}/models`,
      failed: refusal,
      answer$: () => of(Response.json({ object: 'list', data: [model] })),
    },
    {
      method: 'GET',
      path: `${path}/models/:model`,
      failed: refusal,
      answer$: ({ ids }) =>
        defer(() => {
          if (ids['model'] === id) return of(Response.json(model));
          throw refuse('The model does not exist.', 'model', 'model_not_found', 404);
        }),
    },
  ];
};
