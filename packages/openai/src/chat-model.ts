import type { Model } from 'millrace';
import { chatReader } from './chat-chunks.js';
import { chatRequest } from './chat-request.js';
import type { EndpointOptions } from './options.js';
import { type Profile, unsupportedBy } from './profile.js';
import { wireModel } from './wire-model.js';

export const chatModel = (profile: Profile, model: string, options: EndpointOptions): Model => {
  const { sendsWholeCalls, finishesWithDone } = profile;
  return wireModel(profile, model, options, {
    unsupported: unsupportedBy(profile, model, options.reasoningEffort),
    toolIds: profile.toolIds,
    write: chatRequest({ profile, model }, options),
    path: '/chat/completions',
    reader: (source) => chatReader({ sendsWholeCalls, finishesWithDone, ...source }),
  });
};
