import type { Model } from '@millrace/core';
import { chatReader } from './chat-chunks.js';
import { chatRequest } from './chat-request.js';
import { malformedCall } from './malformed-call.js';
import type { EndpointOptions } from './options.js';
import { type Profile, unsupportedBy } from './profile.js';
import { wireModel } from './wire-model.js';

/** Makes a model that is asked over chat completions. */
export const chatModel = (profile: Profile, model: string, options: EndpointOptions): Model =>
  wireModel(profile, model, options, {
    unsupported: unsupportedBy(profile, model, options.reasoningEffort),
    toolIds: profile.toolIds,
    write: (request, target) => chatRequest(request, target, options),
    send: (sdk, body, init) =>
      sdk.chat.completions.create(body, init).asResponse().catch(malformedCall),
    reader: (source) => {
      const { sendsWholeCalls, finishesEachCall } = profile;
      return chatReader({ ...source, sendsWholeCalls, finishesEachCall });
    },
  });
