import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Command } from './conversation-state.js';
import { Icon, isSend } from './pieces.js';
import { textPart } from './requests.js';
import type { UiPart } from './ui-message.js';

type FilePart = Extract<UiPart, { type: 'file' }>;

/** The field for messages. While an answer runs, it adds to that; while a tool waits for the user, a message cancels it. */
export const Composer = (props: {
  readonly isBusy: boolean;
  /** Whether a tool of the running answer waits for approval. */
  readonly isAsked: boolean;
  readonly send: (command: Command) => void;
}) => {
  const { isBusy, isAsked, send } = props;
  const isAdding = isBusy && !isAsked;
  const [text, setText] = useState('');
  const [files, setFiles] = useState<readonly FilePart[]>([]);
  const [problem, setProblem] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const submit = () => {
    const written = text.trim();
    if (isAdding && written !== '') send({ type: 'steer', text: written });
    else if (!isAdding && (written !== '' || files.length > 0)) {
      send({ type: 'ask', parts: [...files, ...(written === '' ? [] : [textPart(written)])] });
      setFiles([]);
    } else return;
    setText('');
    field.current?.focus();
  };
  const attach = (list: FileList | undefined | null) => {
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
          disabled={isAdding}
          onClick={() => picker.current?.click()}
        >
          <Icon name="plus" />
        </button>
        <textarea
          id="message"
          ref={field}
          rows={1}
          aria-label={isAdding ? 'Add to the running answer' : 'Your message'}
          placeholder={isAdding ? 'Add to the running answer …' : 'Your message …'}
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
        {(!isAdding || text.trim() !== '') && (
          <button type="submit" class="primary">
            {isAdding ? 'Add' : 'Send'}
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
