import type { Model } from 'millrace';
import { checkModelCall, optionHint } from '@millrace/wire';
import { chatModel } from './chat-model.js';
import {
  chatRules,
  type EndpointOptions,
  type ResponsesOptions,
  responsesRules,
} from './options.js';
import { exampleOf, type Profile } from './profile.js';
import { checkProfile } from './profile-rules.js';
import { responsesModel } from './responses-model.js';

/** Creates models of one vendor by name. */
export interface Endpoint {
  /** Creates a model that uses the Chat Completions API. */
  (model: string, options?: EndpointOptions): Model;
  /** Creates a model that uses the Chat Completions API. */
  readonly chat: (model: string, options?: EndpointOptions) => Model;
  /** Creates a model that uses the Responses API, if the vendor supports it. */
  readonly responses: (model: string, options?: ResponsesOptions) => Model;
}

/** Explains an option that only the other API has. */
const chatHint =
  ({ name, isOpenAI = false }: Profile): typeof optionHint =>
  (option, known) => {
    if (!Object.hasOwn(responsesRules, option)) return optionHint(option, known);
    const create = isOpenAI
      ? 'Create the model with openai.responses'
      : `If ${name} supports that API, create the model with .responses`;
    return `Only the Responses API has it. ${create}(model, { ${option}: … }).`;
  };

/**
 * Creates the models of a vendor with an OpenAI-compatible API. The profile defines its address and its differences;
 * defaults fit most vendors. Throws a `MillraceError` (`config`) for an unknown field in the profile.
 */
export const endpoint = (profile: Profile): Endpoint => {
  checkProfile(profile);
  const { name } = profile;
  const call = { vendor: name, example: exampleOf(profile, 'gpt-5-mini'), hint: optionHint };
  const chat = (model: string, options: EndpointOptions = {}): Model => {
    checkModelCall({ ...call, model, options, rules: chatRules, hint: chatHint(profile) });
    return chatModel(profile, model, options);
  };
  const responses = (model: string, options: ResponsesOptions = {}): Model => {
    checkModelCall({ ...call, model, options, rules: responsesRules });
    return responsesModel(profile, model, options);
  };
  return Object.assign((model: string, options?: EndpointOptions) => chat(model, options), {
    chat,
    responses,
  });
};
