import { checkOptions, defined, isText } from 'millrace/values';
import { defer, of } from 'rxjs';
import { type ChatProtocol, isPath, type Route } from '../chat/protocol.js';
import { namesOf } from '../client-tools.js';
import { askedForLayers } from './asked-for.js';
import { chatCompletionRoutes } from './chat-completions.js';
import { refusal, refuse } from './refusals.js';
import { responseRoutes } from './responses.js';
import { secondsNow } from './settings.js';

export { openAiModels, type OpenAiModelsOptions } from './models.js';

/** Options of `openAi`. */
export interface OpenAiOptions {
  /** The path of the routes. Default: `/v1`. */
  readonly path?: string | undefined;
  /** The name of the agent as a model. Default: that of the agent. */
  readonly model?: string | undefined;
}

/**
 * Serves clients of the OpenAI API: `chatServer(agent, { protocols: [openAi()] })`. The agent is a model of its name, for
 * chat completions, which keep nothing, and for responses, which continue conversations.
 */
export const openAi = (options: OpenAiOptions = {}): ChatProtocol => {
  checkOptions('openAi()', options, { path: isPath, model: isText });
  const path = (options.path ?? '/v1').replace(/\/+$/u, '');
  const protocol: ChatProtocol = ({ agent, approvals, masks, parts }) => {
    const asked = approvals?.chat.openAi;
    const model = options.model ?? agent.name;
    const { convertPart } = parts;
    const served = {
      model,
      toolNames: new Set(namesOf(agent.tools)),
      approvals: asked,
      parts: defined({ convertPart }),
    };
    return [
      ...modelRoutes(path, model),
      ...chatCompletionRoutes(path, served, masks),
      ...responseRoutes(path, served, masks),
    ].map((route) => ({ ...route, failed: refusal }));
  };
  const use: ChatProtocol['use'] = ({ approvals }) => [
    ...askedForLayers,
    ...(approvals === undefined ? [] : [approvals.chat.openAi.layer]),
  ];
  return Object.assign(protocol, { use });
};

const modelRoutes = (path: string, id: string): readonly Route[] => {
  const model = { id, object: 'model', created: secondsNow(), owned_by: 'millrace' };
  return [
    {
      method: 'GET',
      path: `${path}/models`,
      answer$: () => of(Response.json({ object: 'list', data: [model] })),
    },
    {
      method: 'GET',
      path: `${path}/models/:model`,
      answer$: ({ ids }) =>
        defer(() => {
          if (ids['model'] === id) return of(Response.json(model));
          throw refuse('The model does not exist.', 'model', 'model_not_found', 404);
        }),
    },
  ];
};
