import { connect, type Socket } from 'node:net';
import {
  type Approver,
  MillraceError,
  requireApproval,
  tool,
  type Tool,
  toolOutput,
  type ToolOutput,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { checkOptions, isDelay, isRecord, type Rule } from 'millrace/values';
import { Observable, throwError, timeout } from 'rxjs';

/** An e-mail as the model has written it. */
export interface Mail {
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
}

/** Decides on an e-mail: `({ value }) => …` gets it as `value`. Emitting nothing denies it. */
export type MailApprover = Approver<Mail>;

/** Options of `sendMail`. */
export interface SendMailOptions {
  /** The SMTP server. */
  readonly server: SmtpServer;
  /** The address of the sender, optionally with a name: `{ name: 'Support', address: 'support@example.com' }`. */
  readonly from: string | { readonly name: string; readonly address: string };
  /** The addresses that may receive e-mail: `['ada@example.com', '@example.com']`. The second form allows a domain. */
  readonly recipients: readonly string[];
  /** Decides on each e-mail. `true` allows all of them, `false` denies them. */
  readonly approve: boolean | MailApprover;
  /** The maximum duration, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
}

/** An SMTP server and its account. */
export interface SmtpServer {
  readonly host: string;
  /** Default: 465 if `secure`, else 587. */
  readonly port?: number;
  /** Whether the connection is TLS from the start. Default: `false`, and with a password, STARTTLS is required. */
  readonly secure?: boolean;
  readonly user?: string;
  readonly password?: string;
}

/**
 * Creates the tool `send_mail`, which sends plain text by SMTP, after approval and to allowed recipients only.
 *
 * Recipients outside of the list are an error, before anyone is asked. Needs the package `nodemailer`, which it loads on
 * first use. Unsubscribing closes the connection; the server may have accepted the e-mail by then. Errors contain neither
 * the password nor the answer of the server to it. `details` has `to`, `messageId` and `rejected`.
 */
export const sendMail = (options: SendMailOptions): Tool => {
  checkOptions('sendMail()', options, rules, ['server', 'from', 'recipients', 'approve']);
  const { recipients, approve, timeoutMs = 30_000 } = options;
  const isAllowed = allowing(recipients);
  const mail: Tool<Mail> = tool({
    name: 'send_mail',
    description: `Sends an e-mail as plain text, after approval. Allowed recipients: ${recipients.join(', ')}.`,
    input: jsonSchema({
      type: 'object',
      properties: {
        to: {
          type: 'array',
          minItems: 1,
          maxItems: 10,
          items: { type: 'string', maxLength: 254 },
          description: 'The addresses of the recipients, without names.',
          examples: [['ada@example.com']],
        },
        subject: { type: 'string', minLength: 1, maxLength: 200, description: 'The subject.' },
        text: { type: 'string', minLength: 1, maxLength: 50_000, description: 'The text.' },
      },
      required: ['to', 'subject', 'text'],
      additionalProperties: false,
    }),
    run: (given, { scheduler }) => {
      check(given, isAllowed);
      return sent$(given, options, timeoutMs).pipe(
        timeout({
          first: timeoutMs,
          scheduler,
          with: () =>
            throwError(
              () =>
                new MillraceError(
                  'timeout',
                  `The mail server took longer than ${timeoutMs} ms. It may have accepted the e-mail.`,
                ),
            ),
        }),
      );
    },
  });
  return typeof approve === 'boolean'
    ? requireApproval(mail, approve)
    : requireApproval(mail, (request) => {
        const refused = refusal(request.value, isAllowed);
        return refused === undefined ? approve(request) : { approved: false, reason: refused };
      });
};

const isAddress = (value: unknown): boolean =>
  typeof value === 'string' && value.length <= 254 && addressPattern.test(value);

/** One address without a name, a group, a comment, quotes or a route: nothing that could mean two. */
const addressPattern =
  /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/u;

const hasControls = (text: string): boolean => /[\p{Cc}\u2028\u2029]/u.test(text);

const isSender = (value: unknown): boolean =>
  isAddress(value) ||
  (isRecord(value) &&
    isAddress(value['address']) &&
    typeof value['name'] === 'string' &&
    !hasControls(value['name']));

const isServer = (value: unknown): boolean => {
  if (!isRecord(value)) return false;
  const { host, port, secure, user, password, ...others } = value;
  const isTextOrUnset = (it: unknown): boolean => it === undefined || typeof it === 'string';
  return (
    typeof host === 'string' &&
    host !== '' &&
    (port === undefined || Number.isInteger(port)) &&
    (secure === undefined || typeof secure === 'boolean') &&
    [user, password].every(isTextOrUnset) &&
    Object.keys(others).length === 0
  );
};

const rules: Readonly<Record<keyof SendMailOptions, Rule>> = {
  server: [isServer, "a server: { host: 'smtp.example.com', user: '…', password: '…' }"],
  from: [isSender, "an address, or { name: 'Support', address: 'support@example.com' }"],
  recipients: [
    (value) =>
      Array.isArray(value) &&
      value.length > 0 &&
      value.every((it) => isAddress(it) || (typeof it === 'string' && isAddress(`x${it}`))),
    "a list of addresses and domains, such as ['ada@example.com', '@example.com']",
  ],
  approve: [
    (value) => typeof value === 'boolean' || typeof value === 'function',
    'an approver function, or true to allow every e-mail',
  ],
  timeoutMs: isDelay,
};

// ---------------------------------------------------------------- checks

type IsAllowed = (address: string) => boolean;

/** The part before the `@` counts as it is written; a domain does not. */
const allowing = (recipients: readonly string[]): IsAllowed => {
  const allowed = new Set(recipients.map(normalized));
  return (address) =>
    allowed.has(normalized(address)) ||
    (isPlain(address) && allowed.has(`@${domainOf(address).toLowerCase()}`));
};

/**
 * Mail servers may send `eve%evil.example@example.org` and `evil.example!eve@example.org` on, and take other signs for a
 * gateway, a program or an option. A domain of the list admits none of these; an address of the list may have them.
 */
const isPlain = (address: string): boolean =>
  /^[A-Za-z0-9](?:[A-Za-z0-9._+'-]*[A-Za-z0-9])?@/u.test(address);

const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1);

const normalized = (address: string): string => {
  const domain = domainOf(address);
  return address.slice(0, address.length - domain.length) + domain.toLowerCase();
};

const refusal = ({ to, subject }: Mail, isAllowed: IsAllowed): string | undefined => {
  const invalid = to.find((address) => !isAddress(address));
  if (invalid !== undefined) return `'${shown(invalid)}' is not a plain e-mail address.`;
  const other = to.find((address) => !isAllowed(address));
  if (other !== undefined) return `'${other}' is not an allowed recipient.`;
  return hasControls(subject) ? 'The subject must be a single line.' : undefined;
};

const shown = (text: string): string => text.replace(/[\p{Cc}\u2028\u2029]/gu, ' ').slice(0, 100);

const check = (mail: Mail, isAllowed: IsAllowed): void => {
  const refused = refusal(mail, isAllowed);
  if (refused !== undefined) throw new MillraceError('refused', refused);
};

// ---------------------------------------------------------------- SMTP

/** Sends an e-mail, and emits the output. Unsubscribing closes the connection. */
const sent$ = (mail: Mail, options: SendMailOptions, timeoutMs: number): Observable<ToolOutput> =>
  new Observable((subscriber) => {
    const sockets: Socket[] = [];
    send(mail, options, timeoutMs, (socket) => {
      sockets.push(socket);
      // Unsubscribing may precede the connection.
      if (subscriber.closed) socket.destroy(new Error('The call was ended.'));
    }).then(
      (output) => {
        subscriber.next(output);
        subscriber.complete();
      },
      (error: unknown) => subscriber.error(explained(error)),
    );
    return () => sockets.forEach((socket) => socket.destroy());
  });

const send = async (
  { to, subject, text }: Mail,
  { server, from }: SendMailOptions,
  timeoutMs: number,
  opened: (socket: Socket) => void,
): Promise<ToolOutput> => {
  const { createTransport } = await load();
  const { host, secure = false, port = secure ? 465 : 587, user, password } = server;
  const hasAccount = user !== undefined || password !== undefined;
  const transport = createTransport({
    ...{ host, port, secure },
    ...(hasAccount && { auth: { user: user ?? '', pass: password ?? '' }, requireTLS: !secure }),
    disableFileAccess: true,
    disableUrlAccess: true,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    getSocket: (_, callback) => {
      const socket = connect(port, host);
      socket.once('error', callback);
      socket.once('connect', () => {
        socket.off('error', callback);
        callback(null, { connection: socket });
      });
      opened(socket);
    },
  });
  const sender = typeof from === 'string' ? { name: '', address: from } : from;
  const { messageId, rejected } = await transport.sendMail({
    envelope: { from: sender.address, to: [...to] },
    from: sender,
    // As objects, addresses are not parsed again.
    to: to.map((address) => ({ name: '', address })),
    subject,
    text,
  });
  const refused = rejected.map(String);
  const note = refused.length === 0 ? '' : ` The server has rejected ${refused.join(', ')}.`;
  return toolOutput({
    content: `Sent to ${to.filter((address) => !refused.includes(address)).join(', ')}.${note}`,
    details: { to, messageId, rejected: refused },
  });
};

const load = async () => {
  try {
    return await import('nodemailer');
  } catch (cause) {
    throw new MillraceError('config', 'sendMail() needs a client: npm install nodemailer', {
      cause,
    });
  }
};

/** An error of the server for a model. Its own text may contain what was sent, such as the account. */
const explained = (error: unknown): unknown => {
  if (error instanceof MillraceError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const [kind, why] = reasons[code] ?? ['connection', 'The mail server cannot be reached.'];
  return new MillraceError(kind, why, { cause: new Error(`SMTP failed with ${code}.`) });
};

const reasons: Readonly<Partial<Record<string, readonly [MillraceError['code'], string]>>> = {
  EAUTH: ['auth', 'The mail server rejected the credentials of this program.'],
  ENOAUTH: ['auth', 'The mail server requires authentication.'],
  EENVELOPE: ['invalidRequest', 'The mail server rejected the sender or all recipients.'],
  EMESSAGE: ['invalidRequest', 'The mail server rejected the e-mail.'],
  ETLS: ['connection', 'The mail server does not offer a secure connection.'],
};
