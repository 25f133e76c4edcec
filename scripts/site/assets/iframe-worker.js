// SPDX-License-Identifier: Apache-2.0
// Search in pages that were opened from a disk: browsers start no worker there, so that its script runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      this.inner = this.frame.contentWindow
      this.inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.inner.importScripts = (...addresses) => addresses.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve())
      this.loaded = this.load(address)
    }
    load(address) {
      return new Promise((resolve, reject) => {
        const script = this.inner.document.createElement("script")
        Object.assign(script, { src: address, onload: resolve, onerror: reject })
        this.inner.document.body.append(script)
      })
    }
    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
