import { ServiceError } from "../../errors.ts";
import type { ToolSchema } from "../../inference/engine.ts";
import { clip } from "../clip.ts";
import type { Tool, ToolLimits, ToolResult } from "../tool.ts";
import { HttpTransport } from "./http-transport.ts";
import { StdioTransport } from "./stdio-transport.ts";
import type { McpTransport, RpcResponse } from "./transport.ts";

/** Where a server is: a program of the operator's, or a URL. */
export type McpAddress =
  | { name: string; command: string[]; env: Record<string, string> }
  | { name: string; url: string; headers: Record<string, string> };

const PROTOCOL_VERSION = "2025-06-18";
const CONNECT_LIMIT_MS = 60_000;
const MAX_TOOLS = 200;

/** One rollout's connection to one server of the Model Context Protocol, whose tools the agent gets. */
export class McpServer implements AsyncDisposable {
  readonly tools: Tool[] = [];
  readonly #name: string;
  readonly #transport: McpTransport;
  readonly #limits: ToolLimits;
  readonly #signal: AbortSignal;
  #lastId = 0;

  /** @throws ServiceError `tool_server_failed`; the abort reason. */
  static async connect(address: McpAddress, limits: ToolLimits, signal: AbortSignal) {
    const server = new McpServer(address, limits, signal);
    try {
      await server.#begin();
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor(address: McpAddress, limits: ToolLimits, signal: AbortSignal) {
    this.#name = address.name;
    this.#limits = limits;
    this.#signal = signal;
    this.#transport = this.#guard(() =>
      "command" in address
        ? new StdioTransport(address.command, address.env)
        : new HttpTransport(address.url, address.headers),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport.close();
  }

  async #begin(): Promise<void> {
    const clientInfo = { name: "rolloutd", version: "1" };
    const hello = { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo };
    const { protocolVersion } = await this.#ask<{ protocolVersion?: string }>("initialize", hello);
    this.#transport.agreed(protocolVersion ?? PROTOCOL_VERSION);
    const ready = { jsonrpc: "2.0", method: "notifications/initialized" } as const;
    await this.#attempt(CONNECT_LIMIT_MS, (signal) => this.#transport.notify(ready, signal));
    let cursor: string | undefined;
    do {
      const params = cursor === undefined ? {} : { cursor };
      const page = await this.#ask<{ tools?: Listed[]; nextCursor?: string }>("tools/list", params);
      this.tools.push(...(page.tools ?? []).map((listed) => this.#tool(listed)));
      cursor = page.nextCursor;
    } while (cursor !== undefined && this.tools.length < MAX_TOOLS);
  }

  #tool({ name, description = "", inputSchema = { type: "object" } }: Listed): Tool {
    const schema: ToolSchema = {
      type: "function",
      function: { name, description, parameters: inputSchema },
    };
    return { schema, run: (args) => this.#call(name, args) };
  }

  /** What the server refuses is for the model to see; what keeps it from answering fails the rollout. */
  async #call(name: string, args: Record<string, unknown>): Promise<ToolResult> {
    const { toolTimeoutMs, maxOutputBytes } = this.#limits;
    const timeout = AbortSignal.timeout(toolTimeoutMs);
    const params = { name, arguments: args };
    const response = await this.#send("tools/call", params, toolTimeoutMs).catch((error) => {
      if (timeout.aborted && !this.#signal.aborted) return null;
      throw error;
    });
    if (response === null) {
      return {
        text: `[The tool gave no answer within ${toolTimeoutMs / 1000} seconds.]`,
        ok: false,
      };
    }
    if (response.error) return { text: `ERROR: ${response.error.message ?? "refused"}`, ok: false };
    const { content = [], isError = false } = (response.result ?? {}) as Called;
    const text = content.map((item) => item.text ?? `[${item.type ?? "content"}]`).join("\n");
    return { text: clip(text, maxOutputBytes), ok: !isError };
  }

  async #ask<T>(method: string, params: unknown): Promise<T> {
    const { result, error } = await this.#send(method, params, CONNECT_LIMIT_MS);
    if (error) throw this.#failed(`${method}: ${error.message ?? "refused"}`);
    return (result ?? {}) as T;
  }

  #send(method: string, params: unknown, limitMs: number): Promise<RpcResponse> {
    const message = { jsonrpc: "2.0", id: ++this.#lastId, method, params } as const;
    return this.#attempt(limitMs, (signal) => this.#transport.request(message, signal));
  }

  async #attempt<T>(limitMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const timeout = AbortSignal.timeout(limitMs);
    try {
      return await work(AbortSignal.any([this.#signal, timeout]));
    } catch (error) {
      this.#signal.throwIfAborted();
      throw this.#failed(timeout.aborted ? `no answer within ${limitMs} ms` : messageOf(error));
    }
  }

  #guard<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw this.#failed(messageOf(error));
    }
  }

  #failed(why: string): ServiceError {
    return new ServiceError("tool_server_failed", `the tool server ${this.#name} failed: ${why}`);
  }
}

type Listed = { name: string; description?: string; inputSchema?: Record<string, unknown> };
type Called = { content?: { type?: string; text?: string }[]; isError?: boolean };

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
