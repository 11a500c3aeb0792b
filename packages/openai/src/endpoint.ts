import type { Model } from '@millrace/core';
import { checkModelCall } from '@millrace/wire';
import { chatModel } from './chat-model.js';
import {
  chatRules,
  type EndpointOptions,
  responsesRules,
  type ResponsesOptions,
} from './options.js';
import type { Profile } from './profile.js';
import { checkProfile } from './profile-rules.js';
import { responsesModel } from './responses-model.js';

/** Makes the models of one vendor, by their names. */
export interface Endpoint {
  /** Makes a model that is asked over chat completions. */
  (model: string, options?: EndpointOptions): Model;
  /** Makes a model that is asked over chat completions. */
  readonly chat: (model: string, options?: EndpointOptions) => Model;
  /** Makes a model that is asked over the Responses API, where the vendor has it. */
  readonly responses: (model: string, options?: ResponsesOptions) => Model;
}

/**
 * Makes the models of a vendor that speaks the wires of OpenAI. A profile says where it is and how it differs; what
 * it does not say is what most take. Throws a `MillraceError` (`config`) for a profile with a field that there is not.
 */
export const endpoint = (profile: Profile): Endpoint => {
  checkProfile(profile);
  const { name } = profile;
  const example = 'gpt-5-mini';
  const chat = (model: string, options: EndpointOptions = {}): Model => {
    checkModelCall({ vendor: name, example, model, options, rules: chatRules });
    return chatModel(profile, model, options);
  };
  const responses = (model: string, options: ResponsesOptions = {}): Model => {
    checkModelCall({ vendor: name, example, model, options, rules: responsesRules });
    return responsesModel(profile, model, options);
  };
  return Object.assign((model: string, options?: EndpointOptions) => chat(model, options), {
    chat,
    responses,
  });
};
