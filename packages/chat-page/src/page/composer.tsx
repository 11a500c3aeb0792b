import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Command, textPart } from './conversation.js';
import { Icon, isSend } from './pieces.js';
import type { UiPart } from './ui-message.js';

type FilePart = Extract<UiPart, { type: 'file' }>;

/** The field for messages. While an answer runs, it adds to that; while a tool waits for its result, it is disabled. */
export const Composer = (props: {
  readonly isBusy: boolean;
  /** The tool that waits for a result of the user. */
  readonly waiting: string | undefined;
  readonly send: (command: Command) => void;
}) => {
  const { isBusy, waiting, send } = props;
  const isDisabled = waiting !== undefined;
  const [text, setText] = useState('');
  const [files, setFiles] = useState<readonly FilePart[]>([]);
  const [problem, setProblem] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), [isDisabled]);
  const submit = () => {
    const written = text.trim();
    if (isBusy && written !== '') send({ type: 'steer', text: written });
    else if (!isBusy && (written !== '' || files.length > 0)) {
      send({ type: 'ask', parts: [...files, ...(written === '' ? [] : [textPart(written)])] });
      setFiles([]);
    } else return;
    setText('');
    field.current?.focus();
  };
  const attach = (list: FileList | undefined | null) => {
    if (isDisabled) return;
    const pictures = [...(list ?? [])].filter(({ type }) => type.startsWith('image/'));
    if (pictures.length === 0) return;
    setProblem('');
    Promise.all(pictures.map(filePartOf)).then(
      (parts) => setFiles((before) => [...before, ...parts]),
      () => setProblem('This picture cannot be read.'),
    );
  };
  return (
    <form
      class="composer"
      aria-label="Message"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        attach(event.dataTransfer?.files);
      }}
    >
      {files.length > 0 && (
        <ul class="files">
          {files.map((file, at) => (
            <li key={at}>
              <img src={file.url} alt={file.filename ?? 'Picture'} />
              <button
                type="button"
                class="icon"
                aria-label={`Remove ${file.filename ?? 'the picture'}`}
                onClick={() => setFiles(files.filter((it) => it !== file))}
              >
                <Icon name="cross" />
              </button>
            </li>
          ))}
        </ul>
      )}
      {problem !== '' && (
        <p class="failure" role="alert">
          {problem}
        </p>
      )}
      {isDisabled && (
        <p class="notice" role="status">
          The tool <b>{waiting}</b> needs its result, above, before you can send a message.
        </p>
      )}
      <div class="field">
        <input
          ref={picker}
          type="file"
          accept="image/*"
          multiple
          hidden
          aria-label="Pictures"
          onChange={(event) => {
            attach(event.currentTarget.files);
            event.currentTarget.value = '';
          }}
        />
        <button
          type="button"
          class="icon"
          aria-label="Attach pictures"
          title="Attach pictures"
          disabled={isBusy || isDisabled}
          onClick={() => picker.current?.click()}
        >
          <Icon name="plus" />
        </button>
        <textarea
          id="message"
          ref={field}
          rows={1}
          disabled={isDisabled}
          aria-label={isBusy ? 'Add to the running answer' : 'Your message'}
          placeholder={isBusy ? 'Add to the running answer …' : 'Your message …'}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onPaste={(event) => attach(event.clipboardData?.files)}
          onKeyDown={(event) => {
            if (!isSend(event)) return;
            event.preventDefault();
            submit();
          }}
        />
        {isBusy && (
          <button type="button" onClick={() => send({ type: 'stop' })}>
            Stop
          </button>
        )}
        {(!isBusy || text.trim() !== '') && (
          <button type="submit" class="primary" disabled={isDisabled}>
            {isBusy ? 'Add' : 'Send'}
          </button>
        )}
      </div>
    </form>
  );
};

/** Larger pictures are scaled: models do so anyway, and the server limits requests. */
const maxBytes = 700_000;
const maxSide = 1_568;

const filePartOf = async (file: File): Promise<FilePart> => {
  const blob = file.size <= maxBytes ? file : await scaled(file);
  const url = await dataUrlOf(blob);
  return { type: 'file', url, mediaType: blob.type, filename: file.name };
};

const scaled = async (file: File): Promise<Blob> => {
  const bitmap = await createImageBitmap(file);
  const factor = Math.min(1, maxSide / Math.max(bitmap.width, bitmap.height));
  const canvas = new OffscreenCanvas(bitmap.width * factor, bitmap.height * factor);
  canvas.getContext('2d')?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: 'image/jpeg', quality: 0.85 });
};

const dataUrlOf = (blob: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(typeof reader.result === 'string' ? reader.result : '');
    reader.onerror = () => reject(new Error('unreadable'));
    reader.readAsDataURL(blob);
  });
