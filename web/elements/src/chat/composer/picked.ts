/** Files that are attached to the next message. */

export interface PickedFile {
  readonly id: number;
  readonly file: File;
  /** Address of a preview; `null` if the file is not an image or is too large. */
  readonly preview: string | null;
}

/** Largest file with a preview. The browser decodes the whole picture for the preview. */
const MOST_PREVIEW_BYTES = 8 << 20;

/** Return whether a file has a preview before it is uploaded. */
export function hasPreview({ type, size }: File): boolean {
  return /^image\/(?:png|jpeg|gif|webp)$/.test(type) && size <= MOST_PREVIEW_BYTES;
}

export class Picked {
  files: readonly PickedFile[] = [];
  /** Reason why the last file was refused; `null` if it was accepted. */
  problem: string | null = null;
  readonly #changed: () => void;
  #count = 0;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  add(file: File): void {
    this.#count += 1;
    const preview = hasPreview(file) ? URL.createObjectURL(file) : null;
    this.#set([...this.files, { id: this.#count, file, preview }], null);
  }

  refuse(problem: string): void {
    this.#set(this.files, problem);
  }

  remove(id: number): void {
    this.#release(this.files.filter((file) => file.id === id));
    this.#set(
      this.files.filter((file) => file.id !== id),
      null,
    );
  }

  clear(): void {
    this.#release(this.files);
    this.#set([], null);
  }

  #release(files: readonly PickedFile[]): void {
    for (const { preview } of files) if (preview !== null) URL.revokeObjectURL(preview);
  }

  #set(files: readonly PickedFile[], problem: string | null): void {
    this.files = files;
    this.problem = problem;
    this.#changed();
  }
}
