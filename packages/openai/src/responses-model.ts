import type { Model } from 'millrace';
import type { ResponsesOptions } from './options.js';
import { type Profile, unsupportedBy } from './profile.js';
import { responsesReader } from './responses-chunks.js';
import { responsesRequest } from './responses-request.js';
import { wireModel } from './wire-model.js';

export const responsesModel = (
  profile: Profile,
  model: string,
  options: ResponsesOptions,
): Model => {
  const { store = false, mcpApprovals } = options;
  return wireModel(profile, model, options, {
    // The API has no field for stop sequences.
    unsupported: [
      ...new Set([
        ...unsupportedBy(profile, model, options.reasoningEffort),
        'stopSequences' as const,
      ]),
    ],
    write: responsesRequest({ profile, model, store }, options),
    path: '/responses',
    reader: (source) => responsesReader({ ...source, mcpApprovals }),
  });
};
