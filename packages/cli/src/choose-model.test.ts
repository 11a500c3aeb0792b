import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { scriptedModel } from 'millrace/testing';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chooseModel, type ModelChoice } from './choose-model.js';
import { firstModelName } from './first-model-name.js';

const choice = (name: string, variables: readonly string[]): ModelChoice => ({
  variables,
  factory: () => Promise.resolve({ model: scriptedModel(), about: name, unit: 'tokens' }),
});
const setting = (env: Readonly<Record<string, string>> = {}, name?: string) => ({
  env,
  name,
  pace: 0,
});

let server: Server;
let url: string;

beforeAll(async () => {
  server = createServer(({ url: path, headers }, response) => {
    const models = { data: [{ id: 'nomic-embed-text' }, { id: 'llama' }, { id: 'qwen' }] };
    const known = path === '/v1/models' && headers.authorization !== 'Bearer wrong';
    response.end(JSON.stringify(known ? models : { error: 'no' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

describe('chooseModel', () => {
  it('takes the demo model, and says that it is no language model', async () => {
    const { model, about, unit } = await chooseModel(setting());
    expect(model.name).toBe('demo-rules');
    expect(about).toMatch(/not a language model/);
    expect(unit).toBe('words');
  });

  it.each([
    [{ OPENAI_API_KEY: 'sk-secret' }, undefined, 'gpt-5-mini at OpenAI'],
    [{ OPENAI_API_KEY: 'sk-secret' }, 'gpt-5', 'gpt-5 at OpenAI'],
    [
      { ANTHROPIC_API_KEY: 'sk-secret', OPENAI_API_KEY: '' },
      undefined,
      'claude-sonnet-4-5 at Anthropic',
    ],
    [{ OPENAI_API_KEY: 'sk-secret', ANTHROPIC_API_KEY: 'sk-secret' }, 'x', 'x at OpenAI'],
    [{ ANTHROPIC_AUTH_TOKEN: 'sk-secret' }, 'x', 'x at Anthropic'],
    [
      { OPENAI_BASE_URL: 'https://models.example.com/v1' },
      undefined,
      'gpt-5-mini at models.example.com',
    ],
    [
      { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_API_KEY: 'sk-secret' },
      'x',
      'x at 127.0.0.1:1',
    ],
  ])('takes what %j asks for, named %s: %s', async (env, name, about) => {
    const chosen = await chooseModel(setting(env, name));
    expect(chosen.about).toBe(`the model ${about}`);
    expect(chosen.model.name).toBe(about.split(' ')[0]);
    expect(chosen.unit).toBe('tokens');
    expect(JSON.stringify(chosen)).not.toContain('secret');
  });

  it('asks an endpoint of its own what its model is called', async () => {
    const { about } = await chooseModel(setting({ OPENAI_BASE_URL: url }));
    expect(about).toBe(`the model llama at ${new URL(url).host}`);
    const mute = await chooseModel(setting({ OPENAI_BASE_URL: `${url}/elsewhere` }));
    expect(mute.about).toMatch(/^the model gpt-5-mini at .* \(a guess: .*--model\)$/);
  });

  it('finds no name if an endpoint reports none', async () => {
    expect(await firstModelName(`${url}/`, 'right')).toBe('llama');
    expect(await firstModelName(url, 'wrong')).toBeUndefined();
    expect(await firstModelName(`${url}/elsewhere`, undefined)).toBeUndefined();
    expect(await firstModelName('http://127.0.0.1:1/v1', undefined)).toBeUndefined();
  });

  it('refuses a name without a provider', async () => {
    await expect(chooseModel(setting({}, 'gpt-5'))).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining('Set OPENAI_API_KEY') as unknown,
    });
  });

  it('takes the first that a variable asks for', async () => {
    const choices = [choice('a', ['A']), choice('b', ['B1', 'B2']), choice('c', ['B1'])];
    expect((await chooseModel(setting({ B2: 'x', B1: 'x' }), choices)).about).toBe('b');
    const some = [choice('a', ['A']), choice('fallback', [])];
    expect((await chooseModel(setting({ A: '' }), some)).about).toBe('fallback');
    await expect(chooseModel(setting(), [choice('a', ['A'])])).rejects.toThrow('No model');
  });
});
