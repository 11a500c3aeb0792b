import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { lentToolContext, scriptedModel, text, toolCall, toolContract } from 'millrace/testing';
import { VirtualTimeScheduler } from 'rxjs';
import { runTool } from '../run-tool.test-support.js';
import { type Mail, sendMail, type SendMailOptions } from './send-mail.js';

const closers: (() => void)[] = [];
afterAll(() => closers.forEach((close) => close()));

/** An SMTP server that keeps what it gets, and answers each command by its first word. */
const openServer = async (answers: Readonly<Record<string, string>> = {}, isSilent = false) => {
  const commands: string[] = [];
  const mails: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    if (isSilent) return;
    const state = { isData: false, rest: '' };
    socket.write('220 mill.test ESMTP\r\n');
    socket.on('data', (chunk) => {
      state.rest += chunk.toString();
      for (;;) {
        const end = state.isData ? '\r\n.\r\n' : '\r\n';
        const at = state.rest.indexOf(end);
        if (at < 0) return;
        const line = state.rest.slice(0, at);
        state.rest = state.rest.slice(at + end.length);
        if (state.isData) mails.push(line);
        else commands.push(line);
        const [word = ''] = state.isData ? ['.'] : line.split(' ');
        state.isData = word === 'DATA';
        const usual = {
          EHLO: '250-mill.test\r\n250 AUTH PLAIN',
          DATA: '354 Go on',
          STARTTLS: '502 No',
          QUIT: '221 Bye',
        }[word];
        socket.write(`${answers[line] ?? answers[word] ?? usual ?? '250 OK'}\r\n`);
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });
  return {
    commands,
    mails,
    sockets,
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
  };
};

const smtp = await openServer();
const server = { host: smtp.host, port: smtp.port };
const create = (more: Partial<SendMailOptions> = {}) =>
  sendMail({
    server,
    from: { name: 'Mill', address: 'mill@mill.test' },
    recipients: ['ada@mill.test', '@Wheel.test', 'gate%way@mill.test'],
    approve: true,
    ...more,
  });
const mail = (more: Partial<Mail> = {}): Mail => ({
  to: ['ada@mill.test'],
  subject: 'Hello',
  text: 'The wheel turns.',
  ...more,
});
const errorOf = (input: unknown, more: Partial<SendMailOptions> = {}): Promise<unknown> =>
  runTool(create(more), input).catch((thrown: unknown) => thrown);

describe('send_mail', () => {
  const samples = {
    valid: [{ ...mail() }],
    invalid: [{}, mail({ to: [] }), mail({ subject: '' }), mail({ text: '' })],
  };
  for (const { name, run } of toolContract(() => create(), samples)) it(name, run);

  it('sends plain text to allowed recipients', async () => {
    smtp.commands.length = 0;
    const { text: sent, output } = await runTool(
      create(),
      mail({
        to: ['ada@mill.test', 'bob@wheel.TEST'],
        subject: 'Größe',
        text: 'One\n.\nQUIT\r\n.two',
      }),
    );
    expect(sent).toBe('Sent to ada@mill.test, bob@wheel.TEST.');
    expect(output.details).toMatchObject({
      to: ['ada@mill.test', 'bob@wheel.TEST'],
      messageId: expect.stringMatching(/@mill\.test>$/u),
      rejected: [],
    });
    expect(smtp.commands.filter((line) => /^(?:MAIL|RCPT)/u.test(line))).toEqual([
      'MAIL FROM:<mill@mill.test>',
      'RCPT TO:<ada@mill.test>',
      'RCPT TO:<bob@wheel.test>',
    ]);
    const [headers = '', ...body] = (smtp.mails.at(-1) ?? '').split('\r\n\r\n');
    expect(headers).toMatch(
      /^From: Mill <mill@mill\.test>\r\nTo: ada@mill\.test, bob@wheel\.test\r\nSubject: =\?UTF-8\?/u,
    );
    expect(headers).toContain('Content-Type: text/plain; charset=utf-8');
    expect(body.join('\r\n\r\n').trimEnd()).toBe('One\r\n..\r\nQUIT\r\n..two');
  });

  it.each(['gate%way@mill.test', "o'neil+news@wheel.test", 'a.b-c_d@wheel.test', 'x@wheel.test'])(
    'sends to %s',
    async (to) => {
      const { text: sent } = await runTool(create(), mail({ to: [to] }));
      expect(sent).toBe(`Sent to ${to}.`);
    },
  );

  it.each([
    [mail({ to: ['eve@evil.test'] }), "'eve@evil.test' is not an allowed recipient."],
    [mail({ to: ['ada@mill.test', 'eve@evil.test'] }), 'not an allowed recipient'],
    [mail({ to: ['ADA@mill.test'] }), 'not an allowed recipient'],
    // A domain of the list admits no address that a mail server may send on.
    [mail({ to: ['eve%evil.test@wheel.test'] }), 'not an allowed recipient'],
    [mail({ to: ['evil.test!eve@wheel.test'] }), 'not an allowed recipient'],
    [mail({ to: ['eve=evil.test@wheel.test'] }), 'not an allowed recipient'],
    [mail({ to: ['|sh@wheel.test'] }), 'not an allowed recipient'],
    [mail({ to: ['/tmp/x@wheel.test'] }), 'not an allowed recipient'],
    [mail({ to: ['-oQ@wheel.test'] }), 'not an allowed recipient'],
    [mail({ to: ['bob@sub.wheel.test'] }), 'not an allowed recipient'],
    [mail({ to: ['eve@evilwheel.test'] }), 'not an allowed recipient'],
    [mail({ to: ['eve@evil.test, ada@mill.test'] }), 'not a plain e-mail address'],
    [mail({ to: ['ada@mill.test <eve@evil.test>'] }), 'not a plain e-mail address'],
    [mail({ to: ['"eve@evil.test"@wheel.test'] }), 'not a plain e-mail address'],
    [mail({ to: ['<eve@evil.test>@wheel.test'] }), 'not a plain e-mail address'],
    [mail({ to: ['eve@evil.test@wheel.test'] }), 'not a plain e-mail address'],
    [mail({ to: ['group: eve@evil.test;@wheel.test'] }), 'not a plain e-mail address'],
    [mail({ to: ['ada@mill.test\r\nBcc: eve@evil.test'] }), 'not a plain e-mail address'],
    [mail({ to: ['ada@mill.test\r\nRCPT TO:<eve@evil.test>'] }), 'not a plain e-mail address'],
    [mail({ to: ['ada(eve)@mill.test'] }), 'not a plain e-mail address'],
    [mail({ to: ['ada@mіll.test'] }), 'not a plain e-mail address'],
    [mail({ subject: 'Hello\r\nBcc: eve@evil.test' }), 'must be a single line'],
    [mail({ subject: 'Hello\nX: y' }), 'must be a single line'],
    [mail({ subject: 'Hello\u2028Bcc: y' }), 'must be a single line'],
    [mail({ subject: 'a\u0000b' }), 'must be a single line'],
  ])('refuses %j without a connection, and without asking', async (input, message) => {
    const before = smtp.sockets.length;
    expect(await errorOf(input)).toMatchObject({
      code: 'refused',
      message: expect.stringContaining(message),
    });
    const asked: unknown[] = [];
    const model = scriptedModel([toolCall('send_mail', { ...input })], [text('No.')]);
    const tools = [create({ approve: (request) => (asked.push(request), true) })];
    const { toolCalls } = await createAgent({ model, tools }).call('x');
    expect(toolCalls[0]?.output).toContain(message);
    expect(asked).toEqual([]);
    expect(smtp.sockets).toHaveLength(before);
  });

  it('cannot add headers by its text', async () => {
    await runTool(
      create(),
      mail({ text: 'Bcc: eve@evil.test\r\n\r\n.\r\nRCPT TO:<eve@evil.test>' }),
    );
    const [headers = ''] = (smtp.mails.at(-1) ?? '').split('\r\n\r\n');
    expect(headers).not.toContain('eve');
    expect(smtp.commands.join()).not.toContain('eve');
  });

  it('T12: sends only what is approved', async () => {
    const before = smtp.mails.length;
    const seen: Mail[] = [];
    const model = scriptedModel([toolCall('send_mail', { ...mail() })], [text('No.')]);
    const tools = [
      create({
        approve: ({ value }) => (seen.push(value), { approved: false, reason: 'Too late.' }),
      }),
    ];
    const { toolCalls } = await createAgent({ model, tools }).call('x');
    expect(toolCalls[0]?.output).toContain('Too late.');
    expect(seen).toEqual([mail()]);
    expect(smtp.mails).toHaveLength(before);
  });

  it('names recipients that the server rejects', async () => {
    const picky = await openServer({ 'RCPT TO:<bob@wheel.test>': '550 Unknown' });
    const ran = await runTool(
      create({ server: { host: picky.host, port: picky.port } }),
      mail({ to: ['ada@mill.test', 'bob@wheel.test'] }),
    );
    expect(ran.text).toBe('Sent to ada@mill.test. The server has rejected bob@wheel.test.');
  });

  it.each([
    [{ RCPT: '550 Unknown' }, {}, 'invalidRequest', 'rejected the sender or all recipients'],
    [{ '.': '554 Spam' }, {}, 'invalidRequest', 'rejected the e-mail'],
    [
      {},
      { user: 'mill', password: 'TOP-SECRET' },
      'connection',
      'does not offer a secure connection',
    ],
    [{ EHLO: '421 Later', HELO: '421 Later' }, {}, 'connection', 'cannot be reached'],
  ])('reports the failure %j %j without the password', async (answers, account, code, message) => {
    const failing = await openServer(answers);
    const error = await errorOf(mail(), {
      server: { host: failing.host, port: failing.port, ...account },
    });
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
    expect(`${String(error)} ${String((error as Error).cause)}`).not.toContain('SECRET');
    expect(failing.commands.join()).not.toContain('AUTH');
  });

  it('reports a server that cannot be reached', async () => {
    expect(await errorOf(mail(), { server: { host: '127.0.0.1', port: 1 } })).toMatchObject({
      code: 'connection',
    });
  });

  it('I5: sends nothing if it is unsubscribed before it has connected', async () => {
    const mails = smtp.mails.length;
    const start = () => create().run$(mail(), lentToolContext()).subscribe();
    start().unsubscribe();
    // The second one takes as long as the first would have.
    await runTool(create(), mail());
    await new Promise(setImmediate);
    expect(smtp.mails).toHaveLength(mails + 1);
  });

  it('I5: unsubscribing, and a time-out, close the connection', async () => {
    const silent = await openServer({}, true);
    const errors: unknown[] = [];
    const scheduler = new VirtualTimeScheduler();
    const start = () =>
      create({ server: { host: silent.host, port: silent.port } })
        .run$(mail(), lentToolContext({ scheduler }))
        .subscribe({ error: (error: unknown) => errors.push(error) });
    const connected = async (count: number) => {
      while (silent.sockets.length < count) await new Promise(setImmediate);
      return silent.sockets[count - 1] as Socket;
    };
    const subscription = start();
    const first = await connected(1);
    first.resume();
    subscription.unsubscribe();
    if (!first.closed) await once(first, 'close');
    expect(errors).toEqual([]);
    start();
    const second = await connected(2);
    second.resume();
    scheduler.flush();
    if (!second.closed) await once(second, 'close');
    expect(errors).toMatchObject([{ code: 'timeout' }]);
  });

  it.each([
    [{}, "sendMail() needs 'server'"],
    [{ server, from: 'mill@mill.test', recipients: ['ada@mill.test'] }, "needs 'approve'"],
    [{ server, from: 'mill@mill.test', recipients: [], approve: true }, "'recipients' must be"],
    [{ server, from: 'mill@mill.test', recipients: ['*'], approve: true }, "'recipients' must be"],
    [
      { server, from: 'Mill <mill@mill.test>', recipients: ['@mill.test'], approve: true },
      "'from' must be",
    ],
    [
      {
        server,
        from: { name: 'a\nb', address: 'mill@mill.test' },
        recipients: ['@mill.test'],
        approve: true,
      },
      "'from' must be",
    ],
    [
      {
        server: { ...server, auth: {} },
        from: 'mill@mill.test',
        recipients: ['@mill.test'],
        approve: true,
      },
      "'server' must be",
    ],
  ])('refuses the options %#', (options, message) => {
    expect(() => sendMail(options as never)).toThrow(message);
  });
});
