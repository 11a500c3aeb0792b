import { createVertex } from '@ai-sdk/google-vertex';
import { afterEach, expect, it } from '@jest/globals';
import { createAgent, textOf } from 'millrace';
import { closeServers, serving } from './ask.test-support.js';
import { aiSdkModel } from './index.js';
import { answering, type Response } from './serve.test-support.js';
import { gemini } from './wires.test-support.js';

afterEach(closeServers);

const json = (body: object): Response => ({
  headers: { 'content-type': 'application/json' },
  frames: [JSON.stringify(body)],
});

/** Google's library exchanges the token of a workload for one of Google, here at a server of the test. */
const vertex = (baseURL: string, tokenURL: string) =>
  createVertex({
    ...{ project: 'mill', location: 'europe-west1', baseURL },
    googleAuthOptions: {
      credentials: {
        type: 'external_account',
        audience: '//iam.example/pool',
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        token_url: `${tokenURL}/token`,
        credential_source: { url: `${tokenURL}/subject` },
      },
    },
  })('gemini-2.5-flash');

it('a request of Vertex carries the token that its credentials are exchanged for', async () => {
  const tokens = await serving(
    { headers: {}, frames: ['subject'] },
    json({ access_token: 'vertex-token', token_type: 'Bearer', expires_in: 3600 }),
  );
  const models = await serving(answering(gemini, { text: ['It snows.'] }));
  const model = aiSdkModel(vertex(models.url, tokens.url));
  expect(textOf(await createAgent({ model }).call('Weather?'))).toBe('It snows.');
  expect(tokens.bodies[1]).toContain('subject_token=subject');
  expect(models.authorizations).toEqual(['Bearer vertex-token']);
});

it('credentials that are refused are an error that asks for them, without the token', async () => {
  const tokens = await serving(
    { headers: {}, frames: ['subject-token-0123456789'] },
    { ...json({ error: 'invalid_grant', error_description: 'Expired.' }), status: 400 },
  );
  const model = aiSdkModel(vertex('http://127.0.0.1:9', tokens.url), { retry: false });
  const error: unknown = await createAgent({ model })
    .call('Weather?')
    .then(
      () => undefined,
      (caught: unknown) => caught,
    );
  expect(error).toMatchObject({ code: 'auth', retryable: false });
  expect(JSON.stringify(error)).not.toContain('subject-token');
});
