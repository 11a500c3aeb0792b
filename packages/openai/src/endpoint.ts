import { MillraceError, type Model } from '@millrace/core';
import { chatModel } from './chat-model.js';
import {
  chatOptionNames,
  checkCall,
  type EndpointOptions,
  responsesOptionNames,
  type ResponsesOptions,
} from './options.js';
import type { Profile } from './profile.js';
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
 * it does not say is what most take.
 */
export const endpoint = (profile: Profile): Endpoint => {
  const { name } = profile;
  if (typeof name !== 'string' || name.trim() === '') {
    throw new MillraceError('config', `endpoint() needs the name of the vendor: { name: 'Mine' }.`);
  }
  const chat = (model: string, options: EndpointOptions = {}): Model => {
    checkCall(name, model, options, chatOptionNames);
    return chatModel(profile, model, options);
  };
  const responses = (model: string, options: ResponsesOptions = {}): Model => {
    checkCall(name, model, options, responsesOptionNames);
    return responsesModel(profile, model, options);
  };
  return Object.assign((model: string, options?: EndpointOptions) => chat(model, options), {
    chat,
    responses,
  });
};
