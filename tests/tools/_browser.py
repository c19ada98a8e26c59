"""Chromium without a screen, for the tests of the page. With TROUPE_SCREENSHOTS=FOLDER it makes pictures there."""

import os
import pathlib
import shutil
import sys
import tempfile
import time

SKIPPED = 77
SECONDS_MAX = 60  # a machine may have much else to do
MOMENTS_MAX = 10  # that the page may need, one a second, to show what is wrong
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="troupe_page"))
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": str(FOLDER)}


def fail(text):
    raise AssertionError(text)


def check(what, holds, seen):
    if not holds:
        fail(f"{what}:\n{seen}")


def selenium():
    """The modules, which Debian has for its own Python."""
    try:
        from selenium import webdriver
    except ImportError:
        sys.path.append("/usr/lib/python3/dist-packages")
        try:
            from selenium import webdriver
        except ImportError:
            print("page: skipped: needs python3-selenium")
            sys.exit(SKIPPED)
    for program in "chromium", "chromedriver":
        if not shutil.which(program):
            print(f"page: skipped: needs {program}")
            sys.exit(SKIPPED)
    return webdriver


class Browser:
    def __init__(self, url):
        webdriver = selenium()
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.chrome.service import Service
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys
        self.failed, self.css, self.keys = WebDriverException, By.CSS_SELECTOR, Keys
        options = webdriver.ChromeOptions()
        for one in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,1300",
                    f"--user-data-dir={FOLDER}/chromium", "--lang=en"):
            options.add_argument(one)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_page_load_timeout(SECONDS_MAX)
        self.url = url
        self.load()

    def load(self, program="zoo"):
        self.driver.get(self.url)
        self.driver.execute_script("window.moments = 0; source.addEventListener('message', () => { ++window.moments; });")
        self.wait("the program's name", lambda: program in self.text("#title"))

    def moments(self):
        return self.driver.execute_script("return window.moments")

    def all(self, selector):
        return self.driver.find_elements(self.css, selector)

    def text(self, selector):
        return self.driver.find_element(self.css, selector).text

    def rows(self, table):
        """The texts of a table's cells, all of one moment."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((line) => [...line.cells].map((c) => c.textContent))", table)

    def wait(self, what, holds, moments=None):
        """Until it holds; with `moments`, the page may draw that often before it does."""
        began, deadline, seen = self.moments() if moments else 0, time.monotonic() + SECONDS_MAX, None
        while True:
            try:
                seen = holds()
                if seen:
                    return seen
            except self.failed as moved:  # the page was drawn anew meanwhile
                seen = moved
            if moments and self.moments() - began > moments:
                fail(f"{what} is not seen after {moments} moments: {seen}\n{self.text('main')}")
            if time.monotonic() > deadline:
                fail(f"{what} is not seen: {seen}\n{self.text('main')}")
            time.sleep(0.05)  # sleeps: the page tells nobody when it has drawn

    def click(self, what, selector, text=None, moments=None):
        """On the first that is seen and has this text: on the element and not on its place, which a new warning moves."""
        def clicked():
            for one in self.all(selector):
                if one.is_displayed() and (text is None or one.text == text):
                    self.driver.execute_script("arguments[0].click()", one)
                    return True
            return False
        self.wait(what, clicked, moments)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self):
        return self.driver.execute_script(
            "const e = document.activeElement, s = getComputedStyle(e);"
            "return {tag: e.tagName, id: e.id, text: e.textContent, table: (e.closest('table') || {}).id || '', head: Boolean(e.closest('thead')),"
            "        outline: s.outlineStyle + ' ' + s.outlineWidth}")

    def emulate(self, command, **arguments):
        self.driver.execute_cdp_cmd("Emulation." + command, arguments)

    def emulate_downloads(self):
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(FOLDER)})

    def scheme(self, name):
        self.emulate("setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def width(self, pixels, height):
        self.emulate("setDeviceMetricsOverride", width=pixels, height=height, deviceScaleFactor=1, mobile=pixels < 600)

    def picture(self, name):
        if folder := os.environ.get("TROUPE_SCREENSHOTS"):
            self.driver.execute_script("window.scrollTo(0, 0)")
            self.driver.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))
