export type Side = 'server' | 'client';

const resources = 'serveMcp has tools, and no resources.';
const prompts = 'serveMcp has tools, and no prompts.';
const logging = 'serveMcp sends no log messages, which the version of 2026-07-28 deprecates.';
const forms = 'serveMcp asks for approvals only, and not with forms of a tool.';

const issuer =
  'The metadata of the suite name another issuer than its URL, which the SDK refuses (RFC 8414, 3.3).';

/** The scenarios that are expected to fail, with the reason. One that passes has to be removed here. */
export const unsupported: Readonly<Record<Side, Readonly<Record<string, string>>>> = {
  server: {
    'logging-set-level': logging,
    'tools-call-with-logging': logging,
    'completion-complete':
      'serveMcp completes no arguments: they are those of prompts and resources.',
    'tools-call-sampling':
      'serveMcp asks no model of the client, which the version of 2026-07-28 deprecates.',
    'elicitation-sep1034-defaults': forms,
    'elicitation-sep1330-enums': forms,
    'server-sse-polling': 'serveMcp cannot resume a stream; the suite only warns about that.',
    'resources-list': resources,
    'resources-read-text': resources,
    'resources-read-binary': resources,
    'resources-templates-read': resources,
    'resources-subscribe': resources,
    'resources-unsubscribe': resources,
    'prompts-list': prompts,
    'prompts-get-simple': prompts,
    'prompts-get-with-args': prompts,
    'prompts-get-embedded-resource': prompts,
    'prompts-get-with-image': prompts,
  },
  client: { 'auth/metadata-var2': issuer, 'auth/metadata-var3': issuer },
};
